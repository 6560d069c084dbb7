# Packages of Red Hat's family.
dnf_do() { dnf --setopt=install_weak_deps=False "$@" </dev/null; }
dnf_why() { grep -m 4 -e '^Error' -e '^No match' -e '^ *Problem' -e '^ *- ' | tr -s ' \n' ' '; }
# dnf_gone: the packages that a plan on standard input takes away, or puts others in the place of.
dnf_gone() {
  awk '/^ +replacing / { sub(/\.[^.]*$/, "", $2); print $2 } /^Removing/ { r = 1; next } !/^ / { r = 0 } r { print $1 }' | sort -u | tr '\n' ' '
}
# dnf_plan PACKAGE: what would have to go, in $gone; in $plan what dnf says.
dnf_plan() {
  plan=$(dnf_do --assumeno install "$1" 2>&1) || case $plan in *"Operation aborted"*) ;; *) return 1;; esac
  gone=$(echo "$plan" | dnf_gone)
}
