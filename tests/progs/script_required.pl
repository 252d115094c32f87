# SPDX-License-Identifier: GPL-2.0-only
#
# A file that script.pl requires.
package Required;

BEGIN { main::spin(20) }

sub inner { main::spin(20) }

main::spin(20);
inner();
1;
