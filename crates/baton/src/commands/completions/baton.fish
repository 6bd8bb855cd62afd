# Completions of baton for fish: baton completions fish > ~/.config/fish/completions/baton.fish
function __baton_complete
    set -l words (commandline -opc)
    $words[1] complete fish -- $words[2..] (commandline -ct) 2> /dev/null
end
complete -c baton -f -a '(__baton_complete)'
