/* One case for each way in which a test can fail. The filter "canary/empty"
 * matches no case at all, which Criterion alone would call a success. */
#include <signal.h>
#include <stdlib.h>

#include <criterion/criterion.h>

Test(canary, assertion)
{
    cr_assert(1 + 1 == 3, "this case must be seen to fail");
}

Test(canary, crash)
{
    (void)raise(SIGSEGV);
}

Test(canary, leak)
{
    void *volatile lost = malloc(64);
    lost = NULL;
    cr_assert(lost == NULL);
}
