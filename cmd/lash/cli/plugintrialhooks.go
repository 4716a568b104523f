package cli

import (
	"context"
	"encoding/json"
	"errors"

	"lashd/engine/plugin"
	"lashd/pluginloader/manifest"
	"lashd/rpc/protocol"
)

// said is a conversation with one message, the smallest that every hook accepts.
var said = []protocol.Message{protocol.UserMessage([]protocol.InputPart{{Type: protocol.InputText, Text: "hello"}}, nil)}

// calls returns the context of a shell call, the kind of call that policies look
// at.
func calls() plugin.ToolCallContext {
	return plugin.ToolCallContext{
		TurnID: "trn_check", CallID: "call_1", Tool: "shell", Kind: protocol.ToolKindExecute, Replay: protocol.ReplayNever,
		Args: json.RawMessage(`{"command":"true"}`),
	}
}

// ran returns the context of that call after it has run with the given output.
// Each call builds a new context, so hooks of one check do not see changes of another.
func ran(out protocol.ToolOutput) *plugin.ToolResultContext {
	return &plugin.ToolResultContext{ToolCallContext: calls(), Attempt: 1, Output: out}
}

// looks returns a view of a session that has only that conversation.
func looks() *plugin.View { return (&plugin.View{}).WithMessages(nil, said...) }

// asks calls each hook with a minimal context. Any valid answer passes the check,
// whatever it decides. Hooks that are missing here are not called.
var asks = map[manifest.Slot]func(context.Context, *plugin.Session) error{
	manifest.SlotPrompt: func(ctx context.Context, s *plugin.Session) error {
		_, err := s.Prompts(ctx, &plugin.PromptContext{TurnID: "trn_check", View: looks()})
		return err
	},
	manifest.SlotBeforeTurn: func(ctx context.Context, s *plugin.Session) error {
		_, err := s.BeforeTurn(ctx, &plugin.TurnContext{TurnID: "trn_check", View: looks(), Input: said})
		return err
	},
	manifest.SlotBeforeToolCall: func(ctx context.Context, s *plugin.Session) error {
		tc := calls()
		return verdictOf(s.BeforeToolCall(ctx, &tc))
	},
	manifest.SlotAfterToolCall: func(ctx context.Context, s *plugin.Session) error {
		return verdictOf(s.AfterToolCall(ctx, ran(protocol.Succeed("done"))))
	},
	manifest.SlotCheckpoint: func(ctx context.Context, s *plugin.Session) error {
		_, err := s.Checkpoint(ctx, &plugin.CheckpointContext{TurnID: "trn_check", Kind: protocol.BoundaryAfterWork, View: looks()})
		return err
	},
	manifest.SlotAfterTurn: func(ctx context.Context, s *plugin.Session) error {
		report := &protocol.TurnReport{TurnID: "trn_check", Outcome: &protocol.TurnOutcome{Kind: protocol.OutcomeAssistantMessage, Text: "done"}}
		_, err := s.AfterTurn(ctx, &plugin.TurnSummary{TurnID: "trn_check", Report: report})
		return err
	},
	manifest.SlotAssistantStream: func(ctx context.Context, s *plugin.Session) error {
		_, err := s.Stream(ctx, plugin.StreamChunk{Text: "hello "})
		return err
	},
	manifest.SlotAssistantResponse: func(ctx context.Context, s *plugin.Session) error {
		_, err := s.Response(ctx, plugin.Response{Parts: []protocol.Part{{Kind: protocol.PartProse, Text: "hello"}}})
		return err
	},
	manifest.SlotStreamFinished: func(ctx context.Context, s *plugin.Session) error {
		return s.StreamFinished(ctx, plugin.StreamComplete)
	},
	manifest.SlotProjectToolResult: func(ctx context.Context, s *plugin.Session) error {
		if out := s.ProjectResult(ctx, ran(protocol.Succeed("done"))); out.Failure != nil {
			return errors.New(out.Failure.Message)
		}
		return nil
	},
	manifest.SlotConfigChanged: func(ctx context.Context, s *plugin.Session) error {
		_, failed := s.MutateConfig(ctx, protocol.Config{}, protocol.Config{}, plugin.Capabilities{})
		return firstOf(failed)
	},
	manifest.SlotEvent: func(ctx context.Context, s *plugin.Session) error {
		return firstOf(s.Emit(ctx, &plugin.LifecycleEvent{Kind: plugin.SessionRestored, View: looks()}))
	},
	manifest.SlotTransformContext: func(ctx context.Context, s *plugin.Session) error {
		_, err := s.Transform(ctx, &plugin.ContextView{View: looks()}, plugin.PreparedContext{Messages: said})
		return err
	},
	manifest.SlotCompact: func(ctx context.Context, s *plugin.Session) error {
		_, _, err := s.Compact(ctx, &plugin.CompactRequest{View: looks()})
		return err
	},
	manifest.SlotCatalog: func(ctx context.Context, s *plugin.Session) error {
		tools := []protocol.ToolManifest{{ID: "shell", Name: "shell", Description: "Run a command.", Kind: protocol.ToolKindExecute}}
		_, err := s.Contribute(ctx, plugin.CatalogContext{SessionID: s.ID(), Manifests: tools})
		return err
	},
	manifest.SlotProjectProse: func(ctx context.Context, s *plugin.Session) error {
		_, err := s.Prose(ctx, "hello")
		return err
	},
}

// verdictOf returns the error of a verdict, or err. A verdict that denies the call
// is not an error.
func verdictOf(v *plugin.ToolVerdict, err error) error {
	if err != nil {
		return err
	}
	return v.Err
}

// firstOf returns the first failure as an error, or nil.
// Further failures come from the same plugin, as a check opens one only.
func firstOf(failed []plugin.Failure) error {
	if len(failed) == 0 {
		return nil
	}
	return failed[0].Err
}
