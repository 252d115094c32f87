#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Nine users whose files and memory never answer, beside each recorder: what is certain of the table of tests/stall.sh.
PROFIL_STALL_FORM=certain exec "$(dirname "$0")/../stall.sh"
