# fish completion for homing. homing itself tells what may follow; no answer means a file.
function __homing_complete
    set -l before (commandline -opc)
    set -l last (commandline -ct)
    set -l found (homing describe $before[2..-1] "$last" 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path "$last"
    end
end
complete -c homing -f -a '(__homing_complete)'
