# SPDX-License-Identifier: Apache-2.0
# A text as a string of C: a line for each of its lines.
s/[\\"]/\\&/g
s/.*/"&\\n"/
