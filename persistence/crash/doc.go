// Package crash holds the tests that kill the store, cut its power and break its disk. A copy of the test binary runs a
// workload and says which commits were acknowledged; whatever then happens, those must be there.
package crash
