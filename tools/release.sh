#!/usr/bin/env bash
# Makes a release: bash tools/release.sh v0.2.0 [--tag]
#
# The go.mod of every module but the root's has replace lines to its siblings' folders, which
# "go install MODULE@VERSION" refuses. This writes the version in their place, in a commit
# that is on no branch, and tags it: the root first, then the other modules of go.work in its order.
# Without --tag it only shows the commit. It never pushes.
set -euo pipefail
die() { printf 'release: %s\n' "$*" >&2; exit 1; }

version=${1-} mode=${2-}
[[ $version =~ ^v[01]\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || die 'want a version such as v0.2.0; v2 and later need other module paths first'
[[ -z $mode || $mode == --tag ]] || die "unknown argument $mode; want --tag or nothing"
cd "$(dirname "$0")/.."
[[ -z $(git status --porcelain) ]] || die 'the checkout is not clean; commit or remove what git status shows'
grep -qF "## [${version#v}]" CHANGELOG.md || die "CHANGELOG.md has no heading ## [${version#v}]; move Unreleased there and commit"

root=$(GOWORK=off go list -m)
mapfile -t others < <(go list -m | grep -vxF "$root")
tags=("$version")
for module in "${others[@]}"; do tags+=("${module#"$root"/}/$version"); done
for tag in "${tags[@]}"; do
	! git rev-parse -q --verify "refs/tags/$tag" >/dev/null || die "the tag $tag exists; a published version can't be changed, take the next"
done

tree=$(mktemp -d)
trap 'git worktree remove --force "$tree"' EXIT
git worktree add -q --detach "$tree"
for module in "${others[@]}"; do
	mod=$tree/${module#"$root"/}/go.mod
	for sibling in "$root" "${others[@]}"; do
		go mod edit -dropreplace="$sibling" "$mod"
		! grep -qE "^(require|\s)\s*$sibling v" "$mod" || go mod edit -require="$sibling@$version" "$mod"
	done
	! grep -q '^replace\|=>' "$mod" || die "$mod still replaces something; go install would refuse it"
done
git -C "$tree" commit -qam "release $version: require the siblings by version"
git -C "$tree" --no-pager show

if [[ $mode != --tag ]]; then
	printf '\nA dry run: nothing was tagged. With --tag these would be made: %s\n' "${tags[*]}"
	exit
fi
for tag in "${tags[@]}"; do git -C "$tree" tag -a "$tag" -m "$tag"; done
printf '\nTagged. To publish all of them at once or none:\n  git push --atomic origin %s\n' "${tags[*]}"
