#compdef baton
# Completions of baton for zsh. In ~/.zshrc, after compinit: eval "$(baton completions zsh)"
_baton() {
    local -a candidates
    candidates=("${(@f)$("${words[1]}" complete zsh -- "${(@)words[2,CURRENT]}" 2> /dev/null)}")
    if [[ -n ${candidates[1]} ]]; then
        _describe baton candidates
    else
        _files
    fi
}
compdef _baton baton
