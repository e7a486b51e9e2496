/* The algebra of lower and upper bounds. */
#include "engine/query/bounds.h"

#include "io/base/error.h"

static void drop_must(struct lahar_bounds *bounds)
{
    if (bounds->has_must) {
        lahar_docset_deinit(&bounds->must);
        bounds->has_must = false;
    }
}

void lahar_bounds_deinit(struct lahar_bounds *bounds)
{
    if (bounds->shape == LAHAR_BOUNDS_SOME) {
        drop_must(bounds);
        lahar_docset_deinit(&bounds->may);
    }
    bounds->shape = LAHAR_BOUNDS_NONE;
}

static const struct lahar_docset *must_of(const struct lahar_bounds *bounds)
{
    return bounds->is_exact ? &bounds->may : bounds->has_must ? &bounds->must : NULL;
}

/* Takes the place of into. */
static lahar_status replace(struct lahar_bounds *into, struct lahar_bounds *other)
{
    lahar_bounds_deinit(into);
    *into = *other;
    other->shape = LAHAR_BOUNDS_NONE;
    return LAHAR_OK;
}

void lahar_bounds_set(struct lahar_bounds *bounds, enum lahar_bounds_shape shape)
{
    *bounds = (struct lahar_bounds){.shape = shape};
}

void lahar_bounds_loosen(struct lahar_bounds *bounds)
{
    if (bounds->shape == LAHAR_BOUNDS_SOME) {
        drop_must(bounds);
        bounds->is_exact = false;
    } else if (bounds->shape == LAHAR_BOUNDS_EVERY) {
        bounds->shape = LAHAR_BOUNDS_UNKNOWN;
    }
}

/* Holds must as a set of its own, so that may can change apart from it. */
static lahar_status split(struct lahar_bounds *bounds, lahar_error *error)
{
    if (!bounds->is_exact) {
        return LAHAR_OK;
    }
    const lahar_status status = lahar_docset_init_like(&bounds->must, &bounds->may, error);
    if (status == LAHAR_OK) {
        lahar_docset_or(&bounds->must, &bounds->may);
        bounds->is_exact = false;
        bounds->has_must = true;
    }
    return status;
}

static lahar_status and_sets(struct lahar_bounds *into, struct lahar_bounds *other,
                             lahar_error *error)
{
    const struct lahar_docset *must = must_of(other);
    lahar_status status = LAHAR_OK;
    if (!into->is_exact || !other->is_exact) {
        if (must == NULL) {
            lahar_bounds_loosen(into);
        } else {
            status = split(into, error);
            if (into->has_must) {
                lahar_docset_and(&into->must, must);
            }
        }
    }
    lahar_docset_and(&into->may, &other->may);
    lahar_bounds_deinit(other);
    return status;
}

static lahar_status or_sets(struct lahar_bounds *into, struct lahar_bounds *other,
                            lahar_error *error)
{
    if (!into->is_exact && !into->has_must && must_of(other) != NULL) {
        /* The side that knows more is the better one to build on. */
        const struct lahar_bounds swapped = *into;
        *into = *other;
        *other = swapped;
    }
    const struct lahar_docset *must = must_of(other);
    lahar_status status = LAHAR_OK;
    if (!into->is_exact || !other->is_exact) {
        status = split(into, error);
        if (must != NULL && into->has_must) {
            lahar_docset_or(&into->must, must);
        }
    }
    lahar_docset_or(&into->may, &other->may);
    lahar_bounds_deinit(other);
    return status;
}

lahar_status lahar_bounds_and(struct lahar_bounds *into, struct lahar_bounds *other,
                              lahar_error *error)
{
    if (into->shape == LAHAR_BOUNDS_NONE || other->shape == LAHAR_BOUNDS_EVERY) {
        lahar_bounds_deinit(other);
        return LAHAR_OK;
    }
    if (other->shape == LAHAR_BOUNDS_NONE || into->shape == LAHAR_BOUNDS_EVERY) {
        return replace(into, other);
    }
    if (into->shape == LAHAR_BOUNDS_SOME && other->shape == LAHAR_BOUNDS_SOME) {
        return and_sets(into, other, error);
    }
    if (into->shape == LAHAR_BOUNDS_UNKNOWN) {
        (void)replace(into, other);
    }
    if (into->shape == LAHAR_BOUNDS_SOME) {
        lahar_bounds_loosen(into);
    }
    return LAHAR_OK;
}

/* Everything may match; what must, must. */
static lahar_status or_unknown(struct lahar_bounds *bounds, lahar_error *error)
{
    if (must_of(bounds) == NULL) {
        lahar_bounds_deinit(bounds);
        bounds->shape = LAHAR_BOUNDS_UNKNOWN;
        return LAHAR_OK;
    }
    const lahar_status status = split(bounds, error);
    lahar_docset_fill(&bounds->may);
    return status;
}

lahar_status lahar_bounds_or(struct lahar_bounds *into, struct lahar_bounds *other,
                             lahar_error *error)
{
    if (into->shape == LAHAR_BOUNDS_EVERY || other->shape == LAHAR_BOUNDS_NONE) {
        lahar_bounds_deinit(other);
        return LAHAR_OK;
    }
    if (other->shape == LAHAR_BOUNDS_EVERY || into->shape == LAHAR_BOUNDS_NONE) {
        return replace(into, other);
    }
    if (into->shape == LAHAR_BOUNDS_SOME && other->shape == LAHAR_BOUNDS_SOME) {
        return or_sets(into, other, error);
    }
    if (into->shape == LAHAR_BOUNDS_UNKNOWN) {
        (void)replace(into, other);
    }
    return into->shape == LAHAR_BOUNDS_SOME ? or_unknown(into, error) : LAHAR_OK;
}

lahar_status lahar_bounds_not(struct lahar_bounds *bounds, lahar_error *error)
{
    switch (bounds->shape) {
    case LAHAR_BOUNDS_NONE:
        bounds->shape = LAHAR_BOUNDS_EVERY;
        return LAHAR_OK;
    case LAHAR_BOUNDS_EVERY:
        bounds->shape = LAHAR_BOUNDS_NONE;
        return LAHAR_OK;
    case LAHAR_BOUNDS_UNKNOWN:
        return LAHAR_OK;
    case LAHAR_BOUNDS_SOME:
        break;
    }
    if (bounds->is_exact) {
        lahar_docset_invert(&bounds->may);
        return LAHAR_OK;
    }
    if (!bounds->has_must) {
        LAHAR_TRY(lahar_docset_init_like(&bounds->must, &bounds->may, error));
        bounds->has_must = true;
    }
    const struct lahar_docset may = bounds->may;
    bounds->may = bounds->must;
    bounds->must = may;
    lahar_docset_invert(&bounds->may);
    lahar_docset_invert(&bounds->must);
    return LAHAR_OK;
}
