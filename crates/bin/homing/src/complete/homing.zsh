#compdef homing
# zsh completion for homing. homing itself tells what may follow; no answer means a file.
_homing() {
    local -a found
    found=(${(f)"$(homing complete "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    if (( $#found )); then
        compadd -- $found
    else
        _files
    fi
}
if [ "$funcstack[1]" = _homing ]; then
    _homing "$@"
else
    compdef _homing homing
fi
