# Completions of baton for bash. In ~/.bashrc: eval "$(baton completions bash)"
_baton() {
    local IFS=$'\n'
    # bash takes `agent:codex` for three words; they are one here.
    local line=${COMP_LINE:0:COMP_POINT} words
    read -r -a words -d '' <<< "${line// /$'\n'}"
    [[ $line == *' ' ]] && words+=('')
    COMPREPLY=($("${COMP_WORDS[0]}" complete bash -- "${words[@]:1}" 2> /dev/null))
    local last=${words[-1]}
    [[ $last == *:* && $COMP_WORDBREAKS == *:* ]] && COMPREPLY=("${COMPREPLY[@]#"${last%"${last##*:}"}"}")
    return 0
}
complete -o default -F _baton baton
