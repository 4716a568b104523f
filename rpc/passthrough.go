package rpc

import (
	"context"

	"lashd/rpc/protocol"
)

// The handlers here do nothing but call the engine.

func (c *conn) sessionList(ctx context.Context, p *protocol.SessionListParams) (*protocol.SessionListResult, error) {
	return c.eng.Sessions(ctx, p)
}

func (c *conn) sessionRead(ctx context.Context, p *protocol.SessionReadParams) (*protocol.SessionReadResult, error) {
	return c.eng.ReadSession(ctx, p)
}

func (c *conn) sessionConfigure(ctx context.Context, p *protocol.SessionConfigureParams) (*protocol.HeadResult, error) {
	return c.eng.Configure(ctx, p)
}

func (c *conn) sessionSetTitle(ctx context.Context, p *protocol.SessionSetTitleParams) (*protocol.SeqResult, error) {
	return c.eng.SetTitle(ctx, p)
}

func (c *conn) sessionFork(ctx context.Context, p *protocol.SessionForkParams) (*protocol.SessionNewResult, error) {
	return c.eng.Fork(ctx, p)
}

func (c *conn) sessionRewind(ctx context.Context, p *protocol.SessionRewindParams) (*protocol.SessionRewindResult, error) {
	return c.eng.Rewind(ctx, p)
}

func (c *conn) sessionCompact(ctx context.Context, p *protocol.SessionCompactParams) (*protocol.SessionCompactResult, error) {
	return c.eng.Compact(ctx, p)
}

func (c *conn) sessionApplyExtension(ctx context.Context, p *protocol.SessionExtensionParams) (*protocol.SeqResult, error) {
	return c.eng.ApplyExtension(ctx, p)
}

func (c *conn) sessionClose(ctx context.Context, p *protocol.SessionMutationParams) (*protocol.SeqResult, error) {
	return c.eng.CloseSession(ctx, p)
}

func (c *conn) sessionArchive(ctx context.Context, p *protocol.SessionArchiveParams) (*protocol.SeqResult, error) {
	return c.eng.Archive(ctx, p)
}

func (c *conn) sessionDelete(ctx context.Context, p *protocol.SessionMutationParams) (*protocol.SeqResult, error) {
	return c.eng.DeleteSession(ctx, p)
}

func (c *conn) sessionWait(ctx context.Context, p *protocol.SessionWaitParams) (*protocol.SessionWaitResult, error) {
	return c.eng.WaitIdle(ctx, p)
}

func (c *conn) graphRead(ctx context.Context, p *protocol.GraphReadParams) (*protocol.GraphReadResult, error) {
	return c.eng.ReadGraph(ctx, p)
}

func (c *conn) graphAppend(ctx context.Context, p *protocol.GraphAppendParams) (*protocol.GraphAppendResult, error) {
	return c.eng.Append(ctx, p)
}

func (c *conn) graphPin(ctx context.Context, p *protocol.GraphPinParams) (*protocol.SeqResult, error) {
	return c.eng.Pin(ctx, p)
}

func (c *conn) graphUnpin(ctx context.Context, p *protocol.GraphPinParams) (*protocol.SeqResult, error) {
	return c.eng.Unpin(ctx, p)
}

func (c *conn) snapshotCreate(ctx context.Context, p *protocol.SnapshotMutationParams) (*protocol.SnapshotResult, error) {
	return c.eng.CreateSnapshot(ctx, p)
}

func (c *conn) snapshotList(ctx context.Context, p *protocol.SessionParams) (*protocol.SnapshotListResult, error) {
	return c.eng.Snapshots(ctx, p)
}

func (c *conn) snapshotRead(ctx context.Context, p *protocol.SnapshotParams) (*protocol.SnapshotReadResult, error) {
	return c.eng.ReadSnapshot(ctx, p)
}

func (c *conn) snapshotRestore(ctx context.Context, p *protocol.SnapshotMutationParams) (*protocol.SnapshotRestoreResult, error) {
	return c.eng.RestoreSnapshot(ctx, p)
}

func (c *conn) snapshotDelete(ctx context.Context, p *protocol.SnapshotMutationParams) (*protocol.SeqResult, error) {
	return c.eng.DeleteSnapshot(ctx, p)
}

func (c *conn) artifactRead(ctx context.Context, p *protocol.ArtifactReadParams) (*protocol.ArtifactReadResult, error) {
	return c.eng.ReadArtifact(ctx, p)
}

func (c *conn) artifactWrite(ctx context.Context, p *protocol.ArtifactWriteParams) (*protocol.ArtifactWriteResult, error) {
	return c.eng.WriteArtifact(ctx, p)
}

func (c *conn) operationList(ctx context.Context, p *protocol.OperationListParams) (*protocol.OperationListResult, error) {
	return c.eng.Operations(ctx, p)
}

func (c *conn) operationQuery(ctx context.Context, p *protocol.OperationQueryParams) (*protocol.OperationQueryResult, error) {
	return c.eng.QueryOperation(ctx, p)
}

func (c *conn) operationCommand(ctx context.Context, p *protocol.OperationParams) (*protocol.OperationReceipt, error) {
	return c.eng.Command(ctx, p)
}

func (c *conn) operationTask(ctx context.Context, p *protocol.OperationParams) (*protocol.OperationReceipt, error) {
	return c.eng.Task(ctx, p)
}

func (c *conn) actionInvoke(ctx context.Context, p *protocol.OperationParams) (*protocol.OperationReceipt, error) {
	return c.eng.Action(ctx, p)
}

func (c *conn) turnStart(ctx context.Context, p *protocol.TurnStartParams) (*protocol.TurnStartResult, error) {
	return c.eng.StartTurn(ctx, p)
}

func (c *conn) turnWait(ctx context.Context, p *protocol.TurnWaitParams) (*protocol.TurnReport, error) {
	return c.eng.WaitTurn(ctx, p)
}

func (c *conn) turnSteer(ctx context.Context, p *protocol.TurnSteerParams) (*protocol.TurnSteerResult, error) {
	return c.eng.Steer(ctx, p)
}

func (c *conn) turnRead(ctx context.Context, p *protocol.TurnParams) (*protocol.TurnReport, error) {
	return c.eng.ReadTurn(ctx, p)
}

func (c *conn) turnList(ctx context.Context, p *protocol.TurnListParams) (*protocol.TurnListResult, error) {
	return c.eng.Turns(ctx, p)
}

func (c *conn) queueList(ctx context.Context, p *protocol.QueueListParams) (*protocol.QueueListResult, error) {
	return c.eng.Queue(ctx, p)
}

func (c *conn) queueCancel(ctx context.Context, p *protocol.QueueCancelParams) (*protocol.QueueCancelResult, error) {
	return c.eng.CancelInput(ctx, p)
}

func (c *conn) decisionList(ctx context.Context, p *protocol.DecisionListParams) (*protocol.DecisionListResult, error) {
	return c.eng.Decisions(ctx, p)
}

func (c *conn) toolList(ctx context.Context, p *protocol.SessionParams) (*protocol.ToolListResult, error) {
	return c.eng.Tools(ctx, p)
}

func (c *conn) toolState(ctx context.Context, p *protocol.SessionParams) (*protocol.ToolStateResult, error) {
	return c.eng.ToolState(ctx, p)
}

func (c *conn) toolApplyState(ctx context.Context, p *protocol.ToolApplyStateParams) (*protocol.ToolStateResult, error) {
	return c.eng.ApplyToolState(ctx, p)
}

func (c *conn) toolSetMembership(ctx context.Context, p *protocol.ToolSetMembershipParams) (*protocol.ToolStateResult, error) {
	return c.eng.SetMembership(ctx, p)
}

func (c *conn) toolSetAvailability(ctx context.Context, p *protocol.ToolSetAvailabilityParams) (*protocol.ToolStateResult, error) {
	return c.eng.SetAvailability(ctx, p)
}

func (c *conn) toolRefresh(ctx context.Context, p *protocol.SessionMutationParams) (*protocol.ToolStateResult, error) {
	return c.eng.RefreshTools(ctx, p)
}

func (c *conn) toolCall(ctx context.Context, p *protocol.ToolCallParams) (*protocol.ToolCallResult, error) {
	return c.eng.CallTool(ctx, p)
}

func (c *conn) completionCreate(ctx context.Context, p *protocol.CompletionParams) (*protocol.CompletionResult, error) {
	return c.eng.Complete(ctx, p)
}

func (c *conn) usageRead(ctx context.Context, p *protocol.UsageReadParams) (*protocol.UsageReadResult, error) {
	return c.eng.Usage(ctx, p)
}

func (c *conn) debugPrompt(ctx context.Context, p *protocol.DebugPromptParams) (*protocol.DebugPromptResult, error) {
	return c.eng.DebugPrompt(ctx, p)
}
