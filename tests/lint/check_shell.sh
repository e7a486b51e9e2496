#!/bin/bash
# Shell scripts parse; shellcheck, where it is installed, finds nothing.
cd "$(dirname "$0")/../.." || exit 1
scripts=(tests/run tools/quickstart .ci/run)
mapfile -t more < <(find tests tools bench -name '*.sh' | sort)
scripts+=("${more[@]}")
failures=0
for script in "${scripts[@]}"; do
    bash -n "$script" || failures=$((failures + 1))
done
if command -v shellcheck >/dev/null; then
    shellcheck --severity=warning --external-sources --source-path=SCRIPTDIR "${scripts[@]}" ||
        failures=$((failures + 1))
fi
echo "${#scripts[@]} scripts checked, $failures complaints"
[ "$failures" = 0 ]
