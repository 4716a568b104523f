package protocol

// GraphReadParams reads nodes of the active path, backwards from a cursor.
type GraphReadParams struct {
	SessionID SessionID `json:"sessionId"`
	Cursor    string    `json:"cursor,omitempty"`
	Limit     int       `json:"limit,omitempty"` // 1 to 500; absent: 200. A page of large ones ends earlier, after 4 MiB
}

// GraphReadResult is a page of nodes in order, and the frames and pins of the session.
type GraphReadResult struct {
	Head       Head      `json:"head"`
	Data       []Node    `json:"data"`
	Pins       []PinInfo `json:"pins"`
	NextCursor string    `json:"nextCursor,omitempty"`
}

// PinInfo is a node that is kept reachable.
type PinInfo struct {
	NodeID NodeID `json:"nodeId"`
	Reason string `json:"reason,omitempty"`
	AtMs   int64  `json:"atMs"`
}

// GraphAppendParams adds nodes to history, also beside a running turn.
type GraphAppendParams struct {
	Mutation
	SessionID              SessionID  `json:"sessionId"`
	Nodes                  []NodeBody `json:"nodes"`
	RequiresAncestorNodeID NodeID     `json:"requiresAncestorNodeId,omitempty"` // must still be on the active path
	OperationID            string     `json:"operationId,omitempty"`            // the same operation adds the same nodes once
}

// GraphAppendResult tells whether nodes were added. A stale branch is an answer, not an error.
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
	StaleBranch AppendStatus = "staleBranch"
)

// GraphPinParams keeps a node of the active path reachable, or lets it go.
type GraphPinParams struct {
	Mutation
	SessionID SessionID `json:"sessionId"`
	NodeID    NodeID    `json:"nodeId"`
	Reason    string    `json:"reason,omitempty"`
}
