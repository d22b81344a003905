# Copyright The kubectl-dra Authors.
# SPDX-License-Identifier: Apache-2.0

# Prints what zsh offers for the words of a command line, see complete.bash. An
# interactive shell on a terminal of its own types them, and then the key Tab.
zmodload zsh/zpty
export PROGRAM=$1 OFFERED=$(mktemp)
zpty shell zsh -f -i
zpty -w shell 'PS1=; autoload -Uz compinit; compinit -u -D; source <($PROGRAM completion zsh)
compadd() {
  if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return; fi
  local -a offered; builtin compadd -A offered "$@"; print -rl -- $offered >>$OFFERED
}
offer() { _main_complete; exit }
zle -C offer complete-word offer; bindkey "^I" offer; print IS${:-}READY'
zpty -r shell output '*ISREADY*'
zpty -w -n shell "$*"$'\t'
while zpty -r shell output; do :; done
cat $OFFERED
rm $OFFERED
