package protocol

// NetworkAccess says which hosts a command in a sandbox reaches. lashd computes it when it judges the call. It does not change while the
// command runs.
//
// A pattern is a name, "*.name" for the names below one, "*" for all names, or an address, each with an optional port. Without a port, ports
// 80 and 443 are meant where something is allowed, and every port where it is denied or asked about.
type NetworkAccess struct {
	// Granted are hosts that the call named, and that were allowed.
	Granted []string `json:"granted,omitempty"`
	// Rules are those of each policy that applies to the call. A host that is not granted must be allowed by all of them.
	Rules []HostRules `json:"rules,omitempty"`
	// Denied are hosts that a rule denies, whatever else allows them.
	Denied []string `json:"denied,omitempty"`
}

// HostRules are the patterns of a policy's rules about hosts. A host that Ask matches is not allowed by Allow.
type HostRules struct {
	Allow []string `json:"allow,omitempty"`
	Ask   []string `json:"ask,omitempty"`
}

// RefusedHost is a host that a command tried to reach and that its sandbox refused.
type RefusedHost struct {
	Host   string `json:"host"` // with its port, unless that is 80 or 443
	Reason string `json:"reason"`
	AtMs   int64  `json:"atMs"` // of the first attempt, in ms since 1970
	// Hosts are what the argument hosts of a call needs so that the host is reached. Absent: a rule denies it.
	Hosts []string `json:"hosts,omitempty"`
}
