// Package skip controls which tests may be skipped. A test whose requirement is missing fails, unless
// an environment variable says that skipping it is intended.
package skip

import (
	"os"
	"testing"
)

// Unless skips a test if LASHD_SKIP_<name> is set. Otherwise the test needs what have reports: without
// it, Unless fails the test with the reason in lack.
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
