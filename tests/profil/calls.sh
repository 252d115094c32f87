#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Calls of profil(), buffers, regions of sprofil(); with all back ends.

# shellcheck source=SCRIPTDIR/../lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=SCRIPTDIR/../backends.sh
. "$top/tests/backends.sh"

backends+=" daemon"
check "profild" start_profild
rows profil_calls
rows profil_buffers
rows profil_regions
finish
