#compdef lkgfs
# SPDX-License-Identifier: Apache-2.0
# zsh completion for lkgfs(1): the program itself knows what fits. Installed as _lkgfs.

_lkgfs() {
        local -a found items
        local line word

        found=("${(@f)$(lkgfs --complete "${(@)words[2,CURRENT]}" 2> /dev/null)}")
        case ${found[1]} in
        :file) _files ;;
        :directory) _files -/ ;;
        *)
                for line in "${found[@]}"; do
                        [[ -n $line ]] || continue
                        word=${line%%$'\t'*}
                        items+=("${word//:/\\:}:${line#*$'\t'}")
                done
                _describe -V lkgfs items
                ;;
        esac
}

_lkgfs "$@"
