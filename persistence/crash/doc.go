// Package crash tests the store against killed processes, power loss and disk errors. A copy of the test binary runs a workload and
// reports the acknowledged commits. All of these must survive.
package crash
