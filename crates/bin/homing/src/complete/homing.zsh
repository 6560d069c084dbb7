#compdef homing
# zsh completion for homing. homing itself tells what may follow; no answer means a file.
_homing() {
    local -a found names shown
    local line
    found=(${(f)"$(homing describe "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    if (( $#found )); then
        for line in $found; do
            names+=("${line%%$'\t'*}")
            shown+=("${line/$'\t'/  -- }")
        done
        compadd -l -d shown -- $names
    else
        _files
    fi
}
if [ "$funcstack[1]" = _homing ]; then
    _homing "$@"
else
    compdef _homing homing
fi
