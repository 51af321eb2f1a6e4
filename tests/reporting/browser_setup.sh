#!/bin/sh
# A browser for the tests of pages: Debian's Chromium, where it can be had, and axe-core from npm.
# Prints loudly what is missing; the tests that need it are then skipped.
cache="${1:-.browser}"
axe=4.10.3

loudly() {
    echo "********************************************************************************" >&2
    echo "** $1" >&2
    echo "** The tests of pages in a real browser are SKIPPED or incomplete." >&2
    echo "********************************************************************************" >&2
}

if ! command -v chromium >/dev/null || ! command -v chromedriver >/dev/null; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "installing Chromium for the tests of pages ..."
        { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
            --no-install-recommends chromium chromium-driver; } >/dev/null 2>&1
    fi
    if ! command -v chromium >/dev/null || ! command -v chromedriver >/dev/null; then
        loudly "No chromium and chromedriver (Debian: apt-get install chromium chromium-driver)."
    fi
fi

if [ ! -f "$cache/node_modules/axe-core/axe.min.js" ]; then
    mkdir -p "$cache"
    if ! npm install --prefix "$cache" --no-save --ignore-scripts --silent "axe-core@$axe" \
        >/dev/null 2>&1; then
        loudly "No axe-core (npm install axe-core@$axe): accessibility is not tested."
    fi
fi
exit 0
