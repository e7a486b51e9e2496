/* Numbers of queries and of stored text: parsing without rounding, comparing across types. */
#include "engine/query/literal.h"

#include <langinfo.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "index/shard.h"

__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 unsigned_wide;

/* --- comparing --------------------------------------------------------------- */

static wide to_wide(struct lahar_number n)
{
    return n.kind == LAHAR_NUMBER_I64 ? (wide)n.as.i64 : (wide)n.as.u64;
}

static int sign(bool is_less, bool is_greater)
{
    return is_less ? -1 : is_greater;
}

/* Compares an integer of at most 65 bits with a double, neither of them rounded. */
static int compare_wide(wide a, double b)
{
    if (isnan(b)) {
        return LAHAR_UNORDERED;
    }
    if (b >= 0x1p64) {
        return -1;
    }
    if (b < -0x1p63) {
        return 1;
    }
    const wide truncated = (wide)b;
    const double whole = (double)truncated;
    if (a != truncated) {
        return sign(a<truncated, a> truncated);
    }
    return sign(whole<b, whole> b);
}

int lahar_number_compare(struct lahar_number a, struct lahar_number b)
{
    if (a.kind == LAHAR_NUMBER_F64 && b.kind == LAHAR_NUMBER_F64) {
        if (isnan(a.as.f64) || isnan(b.as.f64)) {
            return LAHAR_UNORDERED;
        }
        return sign(a.as.f64<b.as.f64, a.as.f64> b.as.f64);
    }
    if (b.kind == LAHAR_NUMBER_F64) {
        return compare_wide(to_wide(a), b.as.f64);
    }
    if (a.kind == LAHAR_NUMBER_F64) {
        const int order = compare_wide(to_wide(b), a.as.f64);
        return order == LAHAR_UNORDERED ? order : -order;
    }
    return sign(to_wide(a) < to_wide(b), to_wide(a) > to_wide(b));
}

/* --- parsing ----------------------------------------------------------------- */

/* A decimal taken apart: (-1)^is_negative * digits * 10^-decimals * 10^exponent. */
struct decimal {
    bool is_negative;
    bool is_integer;  /* neither point nor exponent */
    bool is_too_long; /* more significant digits than digits can hold */
    bool has_leading_zero;
    unsigned_wide digits;
    int decimals;
    size_t size; /* bytes taken */
};

static size_t scan_digits(const char *text, size_t size, struct decimal *decimal, bool is_fraction)
{
    size_t i = 0;
    for (; i < size && text[i] >= '0' && text[i] <= '9'; i++) {
        if (decimal->digits > ((unsigned_wide)1 << 100)) {
            decimal->is_too_long = true;
        } else {
            decimal->digits = decimal->digits * 10 + (unsigned)(text[i] - '0');
            decimal->decimals += is_fraction;
        }
    }
    return i;
}

/* False when no number starts the text. An 'e' without digits behind it is left alone. */
static bool scan_decimal(const char *text, size_t size, struct decimal *decimal)
{
    size_t at = size > 0 && text[0] == '-';
    *decimal = (struct decimal){.is_negative = at == 1, .is_integer = true};
    const size_t whole = scan_digits(text + at, size - at, decimal, false);
    decimal->has_leading_zero = whole > 1 && text[at] == '0';
    at += whole;
    if (at < size && text[at] == '.') {
        const size_t fraction = scan_digits(text + at + 1, size - at - 1, decimal, true);
        if (fraction == 0) {
            decimal->size = at;
            return whole != 0;
        }
        at += 1 + fraction;
        decimal->is_integer = false;
    } else if (whole == 0) {
        return false;
    }
    if (whole == 0) {
        decimal->has_leading_zero = true;
    }
    if (at + 1 < size && (text[at] == 'e' || text[at] == 'E')) {
        size_t end = at + 1 + (text[at + 1] == '+' || text[at + 1] == '-');
        const size_t start = end;
        while (end < size && text[end] >= '0' && text[end] <= '9') {
            end++;
        }
        if (end > start) {
            decimal->is_integer = false;
            at = end;
        }
    }
    decimal->size = at;
    return true;
}

/* strtod, which rounds correctly, on a bounded copy that has the point of the host's locale. */
static bool to_double(const char *text, size_t size, double *value_out)
{
    char copy[512];
    if (size >= sizeof copy) {
        return false;
    }
    memcpy(copy, text, size);
    copy[size] = '\0';
    char *point = strchr(copy, '.');
    if (point != NULL) {
        *point = *nl_langinfo(RADIXCHAR);
    }
    char *end = NULL;
    *value_out = strtod(copy, &end);
    return end == copy + size;
}

static bool from_integer(bool is_negative, unsigned_wide magnitude, struct lahar_number *number_out)
{
    if (!is_negative && magnitude <= UINT64_MAX) {
        *number_out = magnitude <= INT64_MAX
                          ? (struct lahar_number){LAHAR_NUMBER_I64, {.i64 = (int64_t)magnitude}}
                          : (struct lahar_number){LAHAR_NUMBER_U64, {.u64 = (uint64_t)magnitude}};
        return true;
    }
    if (is_negative && magnitude <= (unsigned_wide)1 << 63) {
        *number_out =
            (struct lahar_number){LAHAR_NUMBER_I64, {.i64 = (int64_t)(0 - (uint64_t)magnitude)}};
        return true;
    }
    return false;
}

bool lahar_number_of_value(const void *text, size_t size, struct lahar_number *number_out)
{
    struct decimal decimal;
    if (size == 0 || size > 64 || !scan_decimal(text, size, &decimal) || decimal.size != size ||
        decimal.has_leading_zero) {
        return false;
    }
    if (decimal.is_integer) {
        return !decimal.is_too_long && !(decimal.is_negative && decimal.digits == 0) &&
               from_integer(decimal.is_negative, decimal.digits, number_out);
    }
    double value = 0;
    if (!to_double(text, size, &value) || !isfinite(value)) {
        return false;
    }
    *number_out = (struct lahar_number){LAHAR_NUMBER_F64, {.f64 = value}};
    return true;
}

struct unit {
    const char *name;
    uint64_t factor;
    bool is_duration; /* factor in ns */
};

static const struct unit units[] = {
    {"B", 1, false},
    {"kB", 1000, false},
    {"KB", 1000, false},
    {"MB", 1000000, false},
    {"GB", 1000000000, false},
    {"TB", 1000000000000, false},
    {"PB", 1000000000000000, false},
    {"KiB", 1ULL << 10, false},
    {"MiB", 1ULL << 20, false},
    {"GiB", 1ULL << 30, false},
    {"TiB", 1ULL << 40, false},
    {"PiB", 1ULL << 50, false},
    {"ns", 1, true},
    {"us", 1000, true},
    {"\xc2\xb5s", 1000, true},
    {"ms", 1000000, true},
    {"s", 1000000000, true},
    {"m", 60000000000, true},
    {"h", 3600000000000, true},
    {"d", 86400000000000, true},
    {"w", 604800000000000, true},
};

static const struct unit *find_unit(const char *text, size_t size)
{
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strlen(units[i].name) == size && memcmp(units[i].name, text, size) == 0) {
            return &units[i];
        }
    }
    return NULL;
}

/* digits * 10^-decimals * factor / divisor: as an integer where it is one, else as a double. */
static bool scale(const struct decimal *decimal, uint64_t factor, uint64_t divisor,
                  struct lahar_number *number_out)
{
    unsigned_wide ten_power = divisor;
    for (int i = 0; i < decimal->decimals; i++) {
        if (ten_power > ((unsigned_wide)1 << 120)) {
            return false;
        }
        ten_power *= 10;
    }
    if (decimal->is_too_long || (factor != 0 && decimal->digits > ~(unsigned_wide)0 / factor)) {
        return false;
    }
    const unsigned_wide product = decimal->digits * factor;
    if (product % ten_power == 0 &&
        from_integer(decimal->is_negative, product / ten_power, number_out)) {
        return true;
    }
    const double value = (double)product / (double)ten_power;
    *number_out =
        (struct lahar_number){LAHAR_NUMBER_F64, {.f64 = decimal->is_negative ? -value : value}};
    return true;
}

bool lahar_number_parse(const void *text, size_t size, int64_t duration_unit_ns,
                        struct lahar_number *number_out)
{
    const char *p = text;
    struct decimal decimal;
    if (size != 0 && p[0] == '+') {
        p++;
        size--;
    }
    if (size == 0 || !scan_decimal(p, size, &decimal)) {
        return false;
    }
    if (decimal.size == size) {
        if (decimal.is_integer && !decimal.is_too_long &&
            from_integer(decimal.is_negative, decimal.digits, number_out)) {
            return true;
        }
        double value = 0;
        if (!to_double(p, size, &value)) {
            return false;
        }
        *number_out = (struct lahar_number){LAHAR_NUMBER_F64, {.f64 = value}};
        return true;
    }
    /* An exponent and a unit do not go together. */
    if (memchr(p, 'e', decimal.size) != NULL || memchr(p, 'E', decimal.size) != NULL) {
        return false;
    }
    const struct unit *unit = find_unit(p + decimal.size, size - decimal.size);
    return unit != NULL && scale(&decimal, unit->factor,
                                 unit->is_duration ? (uint64_t)duration_unit_ns : 1, number_out);
}

bool lahar_number_in_range(const struct lahar_test_range *range, struct lahar_number number)
{
    if (range->has_low) {
        const int order = lahar_number_compare(number, range->low);
        if (order == LAHAR_UNORDERED || order < 0 || (order == 0 && !range->low_is_inclusive)) {
            return false;
        }
    }
    if (range->has_high) {
        const int order = lahar_number_compare(number, range->high);
        return order < 0 || (order == 0 && range->high_is_inclusive);
    }
    return true;
}

/* --- columns ----------------------------------------------------------------- */

static uint64_t float_rank(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits >> 63 ? ~bits : bits | 1ULL << 63;
}

static struct lahar_number number_at(enum lahar_column column, uint64_t rank)
{
    if (column == LAHAR_COLUMN_U64) {
        return (struct lahar_number){LAHAR_NUMBER_U64, {.u64 = rank}};
    }
    if (column == LAHAR_COLUMN_I64) {
        return (struct lahar_number){LAHAR_NUMBER_I64, {.i64 = (int64_t)(rank ^ 1ULL << 63)}};
    }
    const uint64_t bits = rank >> 63 ? rank & ~(1ULL << 63) : ~rank;
    double v;
    memcpy(&v, &bits, sizeof v);
    return (struct lahar_number){LAHAR_NUMBER_F64, {.f64 = v}};
}

static uint64_t map(enum lahar_column column, uint64_t rank)
{
    const struct lahar_number n = number_at(column, rank);
    switch (column) {
    case LAHAR_COLUMN_I64:
        return lahar_number_from_i64(n.as.i64);
    case LAHAR_COLUMN_U64:
        return lahar_number_from_u64(n.as.u64);
    default:
        return lahar_number_from_f64(n.as.f64);
    }
}

/* The first rank in [first, last] whose number is above bound, or equal to it too. */
static uint64_t first_rank(enum lahar_column column, uint64_t first, uint64_t last,
                           const struct lahar_number *bound, bool or_equal, bool *found_out)
{
    while (first < last) {
        const uint64_t middle = first + (last - first) / 2;
        const int order = lahar_number_compare(number_at(column, middle), *bound);
        if (order > 0 || (or_equal && order == 0)) {
            last = middle;
        } else {
            first = middle + 1;
        }
    }
    const int order = lahar_number_compare(number_at(column, first), *bound);
    *found_out = order > 0 || (or_equal && order == 0);
    return first;
}

bool lahar_column_span(enum lahar_column column, const struct lahar_test_range *range,
                       uint64_t *first_out, uint64_t *last_out)
{
    const bool is_float = column == LAHAR_COLUMN_F64;
    const struct lahar_number *low = range->has_low ? &range->low : NULL;
    const struct lahar_number *high = range->has_high ? &range->high : NULL;
    uint64_t first = is_float ? float_rank(-(double)INFINITY) : 0;
    uint64_t last = is_float ? float_rank((double)INFINITY) : UINT64_MAX;
    bool is_found = true;
    if (low != NULL) {
        first = first_rank(column, first, last, low, range->low_is_inclusive, &is_found);
        if (!is_found) {
            return false;
        }
    }
    if (high != NULL) {
        /* The first beyond the range; the one before it ends the range. */
        const uint64_t beyond =
            first_rank(column, first, last, high, !range->high_is_inclusive, &is_found);
        if (is_found && beyond == first) {
            return false;
        }
        last = is_found ? beyond - 1 : last;
    }
    *first_out = first;
    *last_out = last;
    return true;
}

bool lahar_column_numbers(enum lahar_column column, const struct lahar_test_range *range,
                          uint64_t *low_out, uint64_t *high_out)
{
    uint64_t first = 0;
    uint64_t last = 0;
    if (!lahar_column_span(column, range, &first, &last)) {
        return false;
    }
    *low_out = map(column, first);
    *high_out = map(column, last);
    return true;
}
