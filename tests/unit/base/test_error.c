/* Filling lahar_error: the first failure stays, errno is mapped, long texts are cut. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "io/base/error.h"

Test(error, keeps_the_first_failure)
{
    lahar_error error = {0};
    cr_assert_eq(lahar_fail(&error, LAHAR_CORRUPT, "block %d is torn", 7), LAHAR_CORRUPT);
    cr_assert_eq(lahar_fail_errno(&error, EIO, "cannot close"), LAHAR_IO);
    cr_assert_eq(error.status, LAHAR_CORRUPT);
    cr_assert_eq(error.sys_errno, 0);
    cr_assert_str_eq(error.message, "block 7 is torn");
    lahar_error_clear(&error);
    cr_assert_eq(error.status, LAHAR_OK);
    cr_assert_str_empty(error.message);
}

Test(error, needs_no_place_to_be_written)
{
    cr_assert_eq(lahar_fail(NULL, LAHAR_BUSY, "busy"), LAHAR_BUSY);
    cr_assert_eq(lahar_fail_errno(NULL, ENOSPC, "full"), LAHAR_NO_SPACE);
    lahar_error_context(NULL, "context");
    lahar_error_clear(NULL);
}

Test(error, maps_errno_to_status)
{
    static const struct {
        int sys_errno;
        lahar_status status;
    } cases[] = {
        {ENOSPC, LAHAR_NO_SPACE},  {EDQUOT, LAHAR_NO_SPACE},  {EFBIG, LAHAR_NO_SPACE},
        {ENOMEM, LAHAR_NO_MEMORY}, {ENOENT, LAHAR_NOT_FOUND}, {EEXIST, LAHAR_EXISTS},
        {EROFS, LAHAR_IO},         {EACCES, LAHAR_IO},        {EIO, LAHAR_IO},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lahar_error error = {0};
        cr_assert_eq(lahar_fail_errno(&error, cases[i].sys_errno, "cannot write '%s'", "x"),
                     cases[i].status);
        cr_assert_eq(error.status, cases[i].status);
        cr_assert_eq(error.sys_errno, cases[i].sys_errno);
        cr_assert_eq(strncmp(error.message, "cannot write 'x': ", 18), 0);
        cr_assert_not_null(strstr(error.message, strerror(cases[i].sys_errno)));
    }
}

Test(error, puts_context_before_the_message)
{
    lahar_error error = {0};
    lahar_error_context(&error, "nothing failed");
    cr_assert_str_empty(error.message);
    (void)lahar_fail(&error, LAHAR_IO, "cannot read");
    lahar_error_context(&error, "file %s", "a");
    lahar_error_context(&error, "store");
    cr_assert_str_eq(error.message, "store: file a: cannot read");
}

Test(error, cuts_long_messages_at_the_end)
{
    char text[2000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    lahar_error error = {0};
    (void)lahar_fail_errno(&error, EIO, "%s", text);
    cr_assert_eq(strlen(error.message), LAHAR_ERROR_MESSAGE_SIZE - 1);
    lahar_error_context(&error, "ctx");
    cr_assert_eq(strncmp(error.message, "ctx: xxx", 8), 0);
    cr_assert_eq(strlen(error.message), LAHAR_ERROR_MESSAGE_SIZE - 1);
    lahar_error_context(&error, "%s", text);
    cr_assert_eq(strlen(error.message), LAHAR_ERROR_MESSAGE_SIZE - 1);
    cr_assert_not_null(strstr(error.message, "x: ctx: x"));
}

Test(error, names_every_status)
{
    cr_assert_str_eq(lahar_status_name(LAHAR_OK), "ok");
    cr_assert_str_eq(lahar_status_name(LAHAR_NO_SPACE), "no space");
    cr_assert_str_eq(lahar_status_name(LAHAR_NOT_A_STORE), "not a store");
    for (int status = LAHAR_OK; status <= LAHAR_DENIED; status++) {
        cr_assert_str_neq(lahar_status_name((lahar_status)status), "unknown");
    }
    cr_assert_str_eq(lahar_status_name((lahar_status)99), "unknown");
    cr_assert_str_eq(lahar_status_name((lahar_status)-1), "unknown");
}
