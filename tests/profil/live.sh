#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# When the counts are in the buffer.

# shellcheck source=SCRIPTDIR/../lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=SCRIPTDIR/../backends.sh
. "$top/tests/backends.sh"

check "profild" start_profild
rows profil_live
finish
