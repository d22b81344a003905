# Copyright The kubectl-dra Authors.
# SPDX-License-Identifier: Apache-2.0

# Prints what fish offers for the words of a command line, see complete.bash.
# What comes behind a tab describes the word.
$argv[1] completion fish | source
complete -C "$argv"
