// Package oracles has tests that compare lashd's adapters with the vendors' own libraries, which know the types of the APIs best. It is a
// module of its own so that lashd does not depend on these libraries.
package oracles
