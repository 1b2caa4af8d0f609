/*
 * claim.h
 *     The step of a renewal that gets another machine ID: one of the server's last
 *     run, or one that the registry says is free.
 */
#pragma once

#include "lease/registry.h"
#include "lease/renewal.h"

namespace snowflake {

/*
 * Claims a machine ID in the registry's open transaction and reserves a record for it in
 * shared memory. False if none is free.
 */
bool claim(Registry *registry, RenewalWork *work);

/* The same; an error that says who holds what and until when, if none is free. */
void claim_or_report(Registry *registry, RenewalWork *work);

} /* namespace snowflake */
