# What the shell of a scenario can call that must hold: `happened`, and `holds` and `undone` of a
# fix. It runs as `sh -e` below /job, and `! COMMAND` would end nothing there.

# are STATES UNIT...: each of them is in one of these.
are() {
    states=$1
    shift
    for unit; do
        state=$(systemctl show --value -p ActiveState "$unit")
        echo "$unit is $state"
        case " $states " in *" $state "*) ;; *) return 1 ;; esac
    done
}

# stopped UNIT...: none of them runs, or is about to.
stopped() { are 'inactive failed' "$@"; }

# runs UNIT...: all of them do, or are about to.
runs() { are 'active activating' "$@"; }

# advised TEXT: the fix has told the person to type this.
advised() { grep -oF -e "$1" out/fix.json | head -n 1 | grep -F -e "$1"; }
