package plugin

import "encoding/json"

// Extension is typed data that one plugin offers to others, under an id that they agree on.
type Extension struct {
	ID      string
	Payload json.RawMessage
}

// Extensions are the payloads of each id, in the order in which the factories gave them.
type Extensions map[string][]json.RawMessage
