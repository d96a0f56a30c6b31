# SPDX-License-Identifier: Apache-2.0
# fish completion for lkgfs(1): the program itself knows what fits.

function __lkgfs_complete
    set -l found (lkgfs --complete (commandline -opc)[2..-1] (commandline -ct) 2> /dev/null)
    switch "$found[1]"
        case ':file'
            __fish_complete_path (commandline -ct)
        case ':directory'
            __fish_complete_directories (commandline -ct)
        case '*'
            printf '%s\n' $found
    end
end

complete -c lkgfs -f -a '(__lkgfs_complete)'
