# Copyright The kubectl-dra Authors.
# SPDX-License-Identifier: Apache-2.0

# Prints what bash offers for the words of a command line, of which the last one
# is being typed. The arguments are the program, which must print its completion
# script when asked for "completion bash", and the other words.
for file in /usr/share/bash-completion/bash_completion /opt/homebrew/etc/profile.d/bash_completion.sh; do
  if [ -r "$file" ]; then . "$file"; fi
done
. <("$1" completion bash)
# It tells readline something, which is not there.
compopt() { :; }
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_TYPE=9
COMP_POINT=${#COMP_LINE}
complete=$(complete -p "$1")
complete=${complete#*-F }
"${complete%% *}"
printf '%s\n' "${COMPREPLY[@]}"
