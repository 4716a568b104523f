package protocol

import "encoding/json"

// Node is an immutable entry of a session's history. Exactly one of message, plugin and frameOpen is set.
type Node struct {
	ID         NodeID      `json:"nodeId"`
	Parent     NodeID      `json:"parent,omitempty"` // absent only for the root, which opens a frame
	Generation int64       `json:"generation"`       // distance from the root: 0 for the root, else the parent's + 1
	Frame      FrameID     `json:"frame"`
	TurnID     TurnID      `json:"turnId,omitempty"`
	AtMs       int64       `json:"atMs"`
	Message    *Message    `json:"message,omitempty"`
	Plugin     *PluginNode `json:"plugin,omitempty"`
	FrameOpen  *FrameOpen  `json:"frameOpen,omitempty"`
	Kept       bool        `json:"kept,omitempty"` // a compaction repeated this message of an older frame; people see it only there
}

// PluginNode is an entry of history that only its plugin understands.
type PluginNode struct {
	Plugin string          `json:"plugin,omitempty"` // the plugin that added it; absent: not verified by lashd
	Type   string          `json:"type"`
	Body   json.RawMessage `json:"body"`
}

// FrameOpen starts a frame: a section of history with its own settings.
type FrameOpen struct {
	Key    string `json:"key"`    // the same key opens the same frame, so a retry does not open a second one
	Reason string `json:"reason"` // initial, continueAs, compaction, subagent, or a plugin's own value
	Config Config `json:"config"`
}

// NodeBody is the content of a node before it has a place in history. Exactly one field is set.
type NodeBody struct {
	Message   *Message    `json:"message,omitempty"`
	Plugin    *PluginNode `json:"plugin,omitempty"`
	FrameOpen *FrameOpen  `json:"frameOpen,omitempty"`
}

// Node returns a node with this body. Its parent, generation and frame are set on commit.
func (b NodeBody) Node(id NodeID, atMs int64) Node {
	return Node{ID: id, AtMs: atMs, Message: b.Message, Plugin: b.Plugin, FrameOpen: b.FrameOpen}
}
