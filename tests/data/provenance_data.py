#!/usr/bin/env python3
"""NiFi's sample events and odd lineages through the command line.

    provenance_data.py LAHAR [DATA]

Every sample event under DATA/public/nifi goes in as nifi-json and has to come out equal as JSON, but
for DERIVED keys where the sample has none; rows of the table are made into objects by their header
first. The lineages of DATA/odd/prov have to be what its INDEX.tsv says. PROV-JSON is checked against
the rules of its members; the checker has to understand the W3C's own documents too. Everything is asked
while the events are in journals, and again after rollover. One skip is counted where DATA is absent.
"""
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile

# Keys that exports give to every event; docs/nifi.md lists them.
DERIVED = {"eventId", "eventOrdinal", "timestamp", "timestampMillis"}

# Records of PROV-JSON, with the attributes that each must have.
RELATIONS = {
    "wasGeneratedBy": {"prov:entity"}, "used": {"prov:activity"},
    "wasInformedBy": {"prov:informed", "prov:informant"}, "wasStartedBy": {"prov:activity"},
    "wasEndedBy": {"prov:activity"}, "wasInvalidatedBy": {"prov:entity"},
    "wasDerivedFrom": {"prov:generatedEntity", "prov:usedEntity"},
    "wasAttributedTo": {"prov:entity", "prov:agent"}, "wasAssociatedWith": {"prov:activity"},
    "actedOnBehalfOf": {"prov:delegate", "prov:responsible"},
    "wasInfluencedBy": {"prov:influencee", "prov:influencer"},
    "specializationOf": {"prov:specificEntity", "prov:generalEntity"},
    "alternateOf": {"prov:alternate1", "prov:alternate2"},
    "hadMember": {"prov:collection", "prov:entity"},
    "mentionOf": {"prov:specificEntity", "prov:generalEntity", "prov:bundle"},
}
ELEMENTS = {"entity", "activity", "agent"}


class Test:
    def __init__(self, lahar, data, scratch):
        self.lahar, self.data, self.scratch = lahar, data, scratch
        self.passed = self.failed = self.stores = 0

    def expect(self, condition, what):
        self.passed += bool(condition)
        self.failed += not condition
        if not condition:
            print(f"FAIL {what}")

    def run(self, *arguments):
        done = subprocess.run([self.lahar, *map(str, arguments)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(map(str, arguments))}: status {done.returncode}: "
                                 f"{done.stderr.decode('utf-8', 'replace').strip()}")
        return done.stdout.decode("utf-8")

    def store_of(self, events):
        self.stores += 1
        name = f"{self.scratch}/{self.stores}"
        with open(name + ".jsonl", "w", encoding="utf-8") as file:
            file.writelines(json.dumps(event) + "\n" for event in events)
        self.run("ingest", name, "--format", "nifi-json", name + ".jsonl")
        return name

    def in_both_states(self, store, check):
        check("in journals")
        self.run("rollover", store)
        check("after rollover")

    # --- samples ---------------------------------------------------------------------------------

    def check_sample(self, path, events):
        store = self.store_of(events)

        def check(state):
            out = [json.loads(line) for line in
                   self.run("export", store, "--format", "nifi-json").splitlines()]
            self.expect(len(out) == len(events), f"{path.name}, {state}: {len(out)} events")
            for number, (source, event) in enumerate(zip(events, out)):
                for key in DERIVED - set(source):
                    event.pop(key, None)
                self.expect(source == event, f"{path.name}, {state}: event {number + 1}")
        self.in_both_states(store, check)

    def check_samples(self):
        found = 0
        for path in sorted((self.data / "public/nifi").rglob("*")):
            if path.suffix == ".json":
                events = json.loads(path.read_text("utf-8"))
            elif path.suffix == ".jsonl":
                events = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
            elif path.name == "csv_prov-events.csv":
                rows = list(csv.reader(path.open(encoding="utf-8"), skipinitialspace=True))
                events = [dict(zip((key.strip() for key in rows[0]), row)) for row in rows[1:]]
            else:
                continue
            found += 1
            self.check_sample(path, events)
        self.expect(found >= 4, "the samples are there")

    # --- lineages --------------------------------------------------------------------------------

    def flowfiles(self, store, *arguments):
        """FlowFiles of a lineage by generation, each once, and whether all is there."""
        graph = json.loads(self.run("lineage", store, *arguments, "--format", "json"))
        names = [(node["ff"], node.get("generation", 0)) for node in graph["nodes"] if "ff" in node]
        self.expect(len(names) == len(set(name for name, _ in names)), f"{arguments}: each once")
        return dict(names), not graph["truncated"]

    def check_deep_chain(self):
        path = self.data / "odd/prov/deep_chain_50k.jsonl"
        store = f"{self.scratch}/deep"
        self.run("ingest", store, "--format", "nifi-json", path)

        def check(state):
            names, is_whole = self.flowfiles(store, "f50001", "--ancestors")
            names.pop("f50001")
            self.expect(is_whole and len(names) == 50000, f"deep chain, {state}: {len(names)}")
            names, is_whole = self.flowfiles(store, "f50001", "--ancestors", "--depth", "7")
            self.expect(not is_whole and len(names) == 8, f"deep chain cut, {state}")
            for form in ("tree", "dot", "mermaid"):
                text = self.run("lineage", store, "f50001", "--ancestors", "--format", form)
                self.expect(text.count("\n") > 50000, f"deep chain as {form}, {state}")
            text = self.run("lineage", store, "f50001", "--ancestors", "--format", "prov-json")
            self.expect(check_prov_json(json.loads(text)) is None, f"deep chain, PROV, {state}")
        self.in_both_states(store, check)

    def store_of_runs(self, name):
        """Runs of jobs as FORK events: what a run read are parents, what it wrote children."""
        runs = [json.loads(line) for line in
                (self.data / "odd/prov" / name).read_text("utf-8").splitlines()]
        return self.store_of(
            {"eventType": "FORK", "timestampMillis": i, "eventId": run["run"]["runId"],
             "componentId": run["job"]["name"], "entityId": run["inputs"][0]["name"],
             "parentIds": [data["name"] for data in run["inputs"]],
             "childIds": [data["name"] for data in run["outputs"]]} for i, run in enumerate(runs))

    def check_odd(self):
        cycle = self.store_of_runs("lineage_cycle.jsonl")
        many = self.store_of_runs("multi_run_io.jsonl")
        collision = self.store_of_runs("run_id_collision.jsonl")

        def of(store, name, direction):
            return set(self.flowfiles(store, name, direction)[0])

        def check(state):
            self.expect(of(cycle, "A", "--ancestors") == {"A", "B", "C"}, f"cycle, {state}")
            self.expect(of(cycle, "S", "--ancestors") == {"S"}, f"loop, {state}")
            self.expect(of(many, "e1", "--ancestors") == {"c1", "e1"}, f"runs, {state}")
            self.expect(of(many, "c2", "--descendants") == {"c2", "e2"}, f"runs, {state}")
            job = [json.loads(line) for line in
                   self.run("query", many, "component=embed", "--json").splitlines()[:-1]]
            self.expect({name for event in job for name in event["fields"]["parent_ids"]} ==
                        {"c1", "c2"}, f"upstream of a job, {state}")
            self.expect(of(collision, "menus", "--ancestors") == {"src", "menus"},
                        f"collision, {state}")
            self.expect(of(collision, "in", "--descendants") == {"in", "out"},
                        f"collision, {state}")
        check("in journals")
        for store in (cycle, many, collision):
            self.run("rollover", store)
        check("after rollover")

    # --- PROV-JSON -------------------------------------------------------------------------------

    def check_prov_documents(self):
        documents = sorted((self.data / "public/lineage/w3c-prov-json").rglob("*.json"))
        # Some of them leave out what the format asks for; nothing else may be wrong.
        wrong = [path.name for path in documents
                 if " lacks " not in (check_prov_json(json.loads(path.read_text("utf-8"))) or
                                      " lacks ")]
        self.expect(len(documents) > 300 and not wrong, f"the W3C's documents: {wrong}")
        for document in ({"entities": {}}, {"used": {"_:a": {"prov:entity": "x:e"}}},
                         {"entity": {"x:e": {}}}, {"activity": []}):
            self.expect(check_prov_json(document) is not None, f"{document} is refused")
        store = self.store_of([
            {"eventType": "RECEIVE", "timestampMillis": 0, "entityId": "a", "componentId": "c"},
            {"eventType": "FORK", "timestampMillis": 1, "entityId": "a", "parentIds": ["a"],
             "childIds": ["b", "\"<c>&\u00e4"]},
            {"eventType": "SEND", "timestampMillis": 2, "entityId": "b", "transitUri": "http://x"},
            {"eventType": "DROP", "timestampMillis": 3, "entityId": "b"}])

        def check(state):
            document = json.loads(self.run("lineage", store, "a", "--depth", "all", "--format",
                                           "prov-json"))
            self.expect(check_prov_json(document) is None, f"PROV, {state}")
            self.expect(len(document["entity"]) == 3 and len(document["activity"]) == 4,
                        f"elements, {state}")
        self.in_both_states(store, check)


def check_prov_json(document):
    """None, or what is wrong with a PROV-JSON document. Names have declared prefixes, records are
    objects or, for one identifier, lists of them, and have what their kind needs."""
    if not isinstance(document, dict):
        return "not an object"
    prefixes = {"prov", "xsd", "xsi", "_"} | set(document.get("prefix", {}))

    def is_name(text):
        return isinstance(text, str) and (
            text.split(":", 1)[0] in prefixes if ":" in text else "default" in prefixes)

    for kind, records in document.items():
        if kind == "prefix":
            continue
        if kind == "bundle":
            wrong = [check_prov_json({"prefix": document.get("prefix", {}) |
                                      bundle.get("prefix", {}), **{k: v for k, v in bundle.items()
                                                                   if k != "prefix"}})
                     for bundle in records.values()]
            if any(what is not None for what in wrong):
                return f"bundle: {wrong}"
            continue
        if kind not in RELATIONS and kind not in ELEMENTS:
            return f"{kind} is no kind of record"
        if not isinstance(records, dict):
            return f"{kind} is no object"
        for name, record in records.items():
            if not is_name(name):
                return f"{kind} {name}: no prefix"
            for one in record if isinstance(record, list) else [record]:
                for needed in RELATIONS.get(kind, ()):
                    if needed in one and isinstance(one[needed], str) and not is_name(one[needed]):
                        return f"{kind} {name}: {needed} has no prefix"
                if not RELATIONS.get(kind, set()) <= set(one):
                    return f"{kind} {name} lacks {RELATIONS[kind] - set(one)}"
    return None


def main():
    given = os.environ.get("LAHAR_TEST_DATA") or sys.argv[2]
    data = pathlib.Path(given)
    if not (data / "public/nifi").is_dir() or not (data / "odd/prov").is_dir():
        print(f"no files in {data}")
        print("0 passed, 0 failed, 1 skipped")
        return 0
    with tempfile.TemporaryDirectory(prefix="lahar-prov-") as scratch:
        test = Test(os.path.abspath(sys.argv[1]), data, scratch)
        for check in (test.check_samples, test.check_odd, test.check_deep_chain,
                      test.check_prov_documents):
            try:
                check()
            except AssertionError as error:
                test.expect(False, f"{check.__name__}: {error}")
    print(f"{test.passed} passed, {test.failed} failed, 0 skipped")
    return 1 if test.failed else 0


if __name__ == "__main__":
    sys.exit(main())
