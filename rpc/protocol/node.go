package protocol

import "encoding/json"

// Node is an immutable entry of a session's history. Exactly one of Message, Plugin and Frame is set.
type Node struct {
	ID         NodeID      `json:"nodeId"`
	Parent     NodeID      `json:"parent,omitempty"` // empty only for the root, which opens a frame
	Generation int64       `json:"generation"`       // 0 for the root, parent + 1 otherwise
	Frame      FrameID     `json:"frame"`
	TurnID     TurnID      `json:"turnId,omitempty"`
	AtMs       int64       `json:"atMs"`
	Message    *Message    `json:"message,omitempty"`
	Plugin     *PluginNode `json:"plugin,omitempty"`
	FrameOpen  *FrameOpen  `json:"frameOpen,omitempty"`
}

// PluginNode is an entry that only its plugin understands.
type PluginNode struct {
	Plugin string          `json:"plugin,omitempty"` // whose it is, if lashd saw to that
	Type   string          `json:"type"`
	Body   json.RawMessage `json:"body"`
}

// FrameOpen starts a frame: a labelled interval of history with its own settings.
type FrameOpen struct {
	Key    string `json:"key"`    // deterministic from the call site, so that a retry opens the same frame
	Reason string `json:"reason"` // initial, continueAs, compaction, subagent, or a plugin's own word
	Config Config `json:"config"`
}

// NodeBody is the content of a node that is not placed in history yet: what a client appends and a turn produces.
type NodeBody struct {
	Message   *Message    `json:"message,omitempty"`
	Plugin    *PluginNode `json:"plugin,omitempty"`
	FrameOpen *FrameOpen  `json:"frameOpen,omitempty"`
}

// Node is the body as a node, which is placed once it is committed.
func (b NodeBody) Node(id NodeID, atMs int64) Node {
	return Node{ID: id, AtMs: atMs, Message: b.Message, Plugin: b.Plugin, FrameOpen: b.FrameOpen}
}
