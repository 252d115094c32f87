#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# An hour of profild beside builds, deploys and hostile users, in 42 seconds: what is certain of it. See tests/month.sh.
PROFIL_MONTH_FORM=certain exec "$(dirname "$0")/../month.sh"
