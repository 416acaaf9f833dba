// Package browsertest has tests of the dashboard in a real browser, headless Chromium, with
// all that "gitring ui" has but a daemon with an engine. Where there is no Chromium they are
// skipped.
package browsertest
