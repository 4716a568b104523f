// Package skip lets tests be left out, and sees to it that nobody does so without saying it: a test that lacks what it
// needs fails, unless an environment variable says that this is intended.
package skip

import (
	"os"
	"testing"
)

// Unless leaves a test out if LASHD_SKIP_<name> is set. Otherwise the test needs what have tells of, and fails without it;
// lack says what is missing.
func Unless(t testing.TB, name string, have bool, lack string) {
	t.Helper()
	variable := "LASHD_SKIP_" + name
	switch {
	case os.Getenv(variable) != "":
		t.Skip(variable + " is set")
	case !have:
		t.Fatalf("%s; set %s=1 to leave this test out", lack, variable)
	}
}
