package protocol

// GraphReadParams selects nodes of the active branch, going back from a cursor.
type GraphReadParams struct {
	SessionID SessionID `json:"sessionId"`
	Cursor    string    `json:"cursor,omitempty"`
	Limit     int       `json:"limit,omitempty"` // 1 to 500; absent: 200. A page holds at most about 4 MiB
}

// GraphReadResult is a page of nodes in order, with the session's head and pins.
type GraphReadResult struct {
	Head       Head      `json:"head"`
	Data       []Node    `json:"data"`
	Pins       []PinInfo `json:"pins"`
	NextCursor string    `json:"nextCursor,omitempty"`
}

// PinInfo describes a pinned node.
type PinInfo struct {
	NodeID NodeID `json:"nodeId"`
	Reason string `json:"reason,omitempty"`
	AtMs   int64  `json:"atMs"`
}

// GraphAppendParams appends nodes to history, even during a turn.
type GraphAppendParams struct {
	Mutation
	SessionID              SessionID  `json:"sessionId"`
	Nodes                  []NodeBody `json:"nodes"`
	RequiresAncestorNodeID NodeID     `json:"requiresAncestorNodeId,omitempty"` // must still be on the active branch
	OperationID            string     `json:"operationId,omitempty"`            // repeating an operation id appends its nodes only once
}

// GraphAppendResult reports whether the nodes were appended. A stale branch is a result, not an error.
type GraphAppendResult struct {
	Status  AppendStatus `json:"status"`
	NodeIDs []NodeID     `json:"nodeIds,omitempty"`
	Leaf    NodeID       `json:"leaf"`
	Seq     Seq          `json:"seq"`
	Replayable
}

// AppendStatus is the outcome of an append.
type AppendStatus string

const (
	Appended    AppendStatus = "appended"
	StaleBranch AppendStatus = "staleBranch" // the required ancestor is no longer on the active branch; nothing was appended
)

// GraphPinParams pins or unpins a node of the active branch.
type GraphPinParams struct {
	Mutation
	SessionID SessionID `json:"sessionId"`
	NodeID    NodeID    `json:"nodeId"`
	Reason    string    `json:"reason,omitempty"`
}
