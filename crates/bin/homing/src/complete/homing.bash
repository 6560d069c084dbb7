# bash completion for homing. homing itself tells what may follow; no answer means a file.
_homing() {
    mapfile -t COMPREPLY < <(homing complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o bashdefault -o default -F _homing homing
