package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/engine/builtin/plan"
	"lashd/rpc/protocol"
)

// mode is an entry of the editor's mode menu. It stands for an approval mode, for
// rules that allow edits, and for the plan plugin's option.
type mode struct {
	id, name, about string
	approval        protocol.ApprovalMode // empty: the daemon's default
	edits           protocol.ApprovalMode // what rules say about edits of files; empty: the sandbox decides
	commands        bool                  // a rule asks before commands, also in a sandbox
	plan            bool                  // turn on plan mode
}

// modes are all modes, in the order of the menu. modeOf refers to the default mode
// and the plan mode by index.
var modes = []mode{
	{id: "default", name: "Ask", about: "Asks before a tool changes something that the sandbox does not allow. The sandbox mode workspace allows edits in the workspace."},
	{id: "askBeforeChanges", name: "Ask before edits and commands", about: "Asks before each edit of a file and before each command, not before it reads or searches.", edits: protocol.ApproveAsk, commands: true},
	{id: "askBeforeEdits", name: "Ask before edits", about: "Asks before each edit of a file. The sandbox decides about commands.", edits: protocol.ApproveAsk},
	{id: "acceptEdits", name: "Edit without asking", about: "Edits files of the workspace without a question. The sandbox decides about commands.", edits: protocol.ApproveAllow},
	{id: "plan", name: "Plan", about: "Reads, searches and plans. Changes nothing.", plan: true},
	{id: "askAlways", name: "Ask before every call", about: "Asks before every tool call, also before one that only reads.", approval: protocol.ApproveAsk},
	{id: "bypass", name: "Do not ask", about: "Asks only before calls that change protected files or leave the sandbox, and where a rule says so.", approval: protocol.ApproveAllow},
	{id: "deny", name: "Deny", about: "Denies every tool call that no rule allows.", approval: protocol.ApproveDeny},
}

// editRules returns rules that decide about the tools that edit files. An empty action needs none.
func editRules(action protocol.ApprovalMode) []protocol.ApprovalRule {
	if action == "" {
		return nil
	}
	return []protocol.ApprovalRule{{Tool: "edit", Action: action}, {Tool: "patch", Action: action}, {Tool: "write", Action: action}}
}

// askBeforeCommands asks before each command. Tools like shell count as shell.
var askBeforeCommands = protocol.ApprovalRule{Tool: "shell", Action: protocol.ApproveAsk}

// isModeRule reports whether a mode adds the rule.
func isModeRule(r protocol.ApprovalRule) bool {
	return r == askBeforeCommands || r.Action != protocol.ApproveDeny && slices.Contains(editRules(r.Action), r)
}

// editsOf returns what the rules of a session say about edits of files; the strictest counts.
func editsOf(rules []protocol.ApprovalRule) protocol.ApprovalMode {
	for _, action := range []protocol.ApprovalMode{protocol.ApproveAsk, protocol.ApproveAllow} {
		if !slices.ContainsFunc(editRules(action), func(r protocol.ApprovalRule) bool { return !slices.Contains(rules, r) }) {
			return action
		}
	}
	return ""
}

// modeOf returns the mode that matches a session's configuration. A configuration
// that matches none, such as one made with custom rules, counts as the default
// mode.
func modeOf(c protocol.Config) mode {
	var o plan.Options
	if raw, ok := c.Options[plan.ID]; ok && json.Unmarshal(raw, &o) == nil && o.Mode == plan.PlanOnly {
		return modes[4]
	}
	edits, commands := editsOf(c.Approval.Rules), slices.Contains(c.Approval.Rules, askBeforeCommands)
	for _, m := range modes {
		if !m.plan && m.approval == c.Approval.Mode && (m.approval != "" || m.edits == edits && (commands || !m.commands)) {
			return m
		}
	}
	return modes[0]
}

// set returns the approval settings and plugin options of c, changed to mode m.
// Other rules and options stay. The results share no memory with c.
func (m mode) set(c protocol.Config) (protocol.ApprovalConfig, protocol.PluginOptions) {
	approval := c.Approval
	approval.Mode = m.approval
	approval.Rules = slices.DeleteFunc(slices.Clone(c.Approval.Rules), isModeRule)
	approval.Rules = append(approval.Rules, editRules(m.edits)...)
	if m.commands {
		approval.Rules = append(approval.Rules, askBeforeCommands)
	}
	options := maps.Clone(c.Options)
	delete(options, plan.ID)
	if m.plan {
		if options == nil {
			options = protocol.PluginOptions{}
		}
		options[plan.ID] = json.RawMessage(`{"mode":"plan"}`)
	}
	if options == nil {
		options = protocol.PluginOptions{}
	}
	return approval, options
}

// settings are the modes and models of a session in both forms of the protocol:
// the older one with separate lists, and config options, which include the reasoning effort and the sandbox.
type settings struct {
	modes   *sdk.SessionModeState
	models  *sdk.SessionModelState
	options []sdk.SessionConfigOption
}

const (
	// Ids of the config options.
	optionMode    = "mode"
	optionModel   = "model"
	optionEffort  = "effort"
	optionSandbox = "sandbox"

	// modelDefault is the value of optionEffort with which requests name no effort.
	modelDefault = "default"
)

// settingsOf returns the current settings of a session and the alternatives. The
// models come from the daemon's configuration.
func settingsOf(ctx context.Context, call caller, c protocol.Config) (*settings, error) {
	var list protocol.ModelListResult
	if err := call(ctx, "model/list", protocol.Empty{}, &list); err != nil {
		return nil, err
	}
	now := modeOf(c)
	st := &settings{
		modes:  &sdk.SessionModeState{CurrentModeId: sdk.SessionModeId(now.id), AvailableModes: []sdk.SessionMode{}},
		models: &sdk.SessionModelState{CurrentModelId: sdk.ModelId(c.Model.ID), AvailableModels: []sdk.ModelInfo{}},
	}
	var asMode, asModel sdk.SessionConfigSelectOptionsUngrouped
	for _, m := range modes {
		st.modes.AvailableModes = append(st.modes.AvailableModes, sdk.SessionMode{Id: sdk.SessionModeId(m.id), Name: m.name, Description: &m.about})
		asMode = append(asMode, sdk.SessionConfigSelectOption{Value: sdk.SessionConfigValueId(m.id), Name: m.name, Description: &m.about})
	}
	for _, m := range list.Data {
		if m.Model.ID == c.Model.ID && m.Model.Provider == c.Model.Provider {
			st.models.CurrentModelId = sdk.ModelId(m.Name)
		}
		st.models.AvailableModels = append(st.models.AvailableModels, sdk.ModelInfo{ModelId: sdk.ModelId(m.Name), Name: m.Name})
		asModel = append(asModel, sdk.SessionConfigSelectOption{Value: sdk.SessionConfigValueId(m.Name), Name: m.Name})
	}
	st.options = []sdk.SessionConfigOption{
		choice(optionMode, "Mode", sdk.SessionConfigOptionCategoryMode, now.id, asMode),
		choice(optionModel, "Model", sdk.SessionConfigOptionCategoryModel, string(st.models.CurrentModelId), asModel),
		sandboxChoice(c.Approval.Sandbox),
	}
	if r := c.Model.Reasoning; r != nil {
		st.options = append(st.options, effortChoice(r, c.Model.Effort))
	}
	return st, nil
}

// effortChoice builds the config option for the reasoning effort of a model. A model that requires an effort and has no default
// is not offered its default.
func effortChoice(r *protocol.ReasoningSpec, now string) sdk.SessionConfigOption {
	var all sdk.SessionConfigSelectOptionsUngrouped
	if !r.Mandatory || r.Default != "" {
		all = append(all, sdk.SessionConfigSelectOption{Value: modelDefault, Name: "Default"})
	}
	for _, effort := range r.Efforts {
		all = append(all, sdk.SessionConfigSelectOption{Value: sdk.SessionConfigValueId(effort), Name: effort})
	}
	return choice(optionEffort, "Reasoning effort", sdk.SessionConfigOptionCategoryThoughtLevel, cmp.Or(now, modelDefault), all)
}

// sandboxModes are the modes of the config option for the sandbox, with texts for people.
var sandboxModes = []struct {
	mode        protocol.SandboxMode
	name, about string
}{
	{protocol.SandboxReadOnly, "Read only", "Commands run in a sandbox. They change nothing but temporary files."},
	{protocol.SandboxWorkspace, "Workspace", "Commands run in a sandbox. They change only the workspace, and have no network."},
	{protocol.SandboxFullAccess, "No sandbox", "Commands run outside a sandbox."},
}

// sandboxChoice builds the config option for the sandbox of commands.
func sandboxChoice(now protocol.SandboxMode) sdk.SessionConfigOption {
	var all sdk.SessionConfigSelectOptionsUngrouped
	for _, m := range sandboxModes {
		all = append(all, sdk.SessionConfigSelectOption{Value: sdk.SessionConfigValueId(m.mode), Name: m.name, Description: &m.about})
	}
	return choice(optionSandbox, "Sandbox", "_sandbox", string(cmp.Or(now, protocol.SandboxFullAccess)), all)
}

// choice builds a config option with a fixed list of values.
func choice(id, name string, category sdk.SessionConfigOptionCategory, now string, all sdk.SessionConfigSelectOptionsUngrouped) sdk.SessionConfigOption {
	return sdk.SessionConfigOption{Select: &sdk.SessionConfigOptionSelect{
		Id: sdk.SessionConfigId(id), Name: name, Category: &category, CurrentValue: sdk.SessionConfigValueId(now),
		Options: sdk.SessionConfigSelectOptions{Ungrouped: &all}, Type: "select",
	}}
}

// setMode changes the mode. Like all settings, it takes effect with the next turn.
func (a *agent) setMode(ctx context.Context, r *request, p *sdk.SetSessionModeRequest) (*none, error) {
	s, err := a.session(p.SessionId)
	if err != nil {
		return nil, err
	}
	leave := s.prompts.queue(r)
	defer leave()
	return &none{}, s.config.toMode(ctx, "/modeId", string(p.ModeId))
}

// setModel changes the model, also from the next turn on.
func (a *agent) setModel(ctx context.Context, r *request, p *sdk.UnstableSetSessionModelRequest) (*none, error) {
	s, err := a.session(p.SessionId)
	if err != nil {
		return nil, err
	}
	leave := s.prompts.queue(r)
	defer leave()
	return &none{}, s.config.toModel(ctx, "/modelId", string(p.ModelId))
}

// setConfigOption changes the mode, the model, the effort or the sandbox, and returns all options as they
// are afterwards.
func (a *agent) setConfigOption(ctx context.Context, r *request, p *sdk.SetSessionConfigOptionRequest) (*sdk.SetSessionConfigOptionResponse, error) {
	if p.ValueId == nil {
		return nil, invalidParams("/value", "must be a string")
	}
	s, err := a.session(p.ValueId.SessionId)
	if err != nil {
		return nil, err
	}
	leave := s.prompts.queue(r)
	defer leave()
	switch p.ValueId.ConfigId {
	case optionMode:
		err = s.config.toMode(ctx, "/value", string(p.ValueId.Value))
	case optionModel:
		err = s.config.toModel(ctx, "/value", string(p.ValueId.Value))
	case optionEffort:
		err = s.config.toEffort(ctx, string(p.ValueId.Value))
	case optionSandbox:
		err = s.config.toSandbox(ctx, protocol.SandboxMode(p.ValueId.Value))
	default:
		err = invalidParams("/configId", fmt.Sprintf("unknown option %q", p.ValueId.ConfigId))
	}
	if err != nil {
		return nil, err
	}
	st, err := settingsOf(ctx, s.daemon.call, s.config.get())
	if err != nil {
		return nil, err
	}
	return &sdk.SetSessionConfigOptionResponse{ConfigOptions: st.options}, nil
}

// configuration is the session's configuration as last seen here. It may be
// outdated by a moment if another client changes it.
type configuration struct {
	ref
	overlay *overlay // its tools depend on the sandbox

	mu    sync.Mutex
	known protocol.Config
}

// toMode applies a mode. pointer is the JSON pointer of id, for errors.
func (c *configuration) toMode(ctx context.Context, pointer, id string) error {
	at := slices.IndexFunc(modes, func(m mode) bool { return m.id == id })
	if at < 0 {
		return invalidParams(pointer, fmt.Sprintf("unknown mode %q", id))
	}
	approval, options := modes[at].set(c.get())
	return c.configure(ctx, protocol.SessionConfigureParams{Approval: &approval, Options: options})
}

// toModel switches to a configured model by its name. The daemon rejects unknown
// names.
func (c *configuration) toModel(ctx context.Context, pointer, name string) error {
	if name == "" {
		return invalidParams(pointer, "must be the name of a model")
	}
	return c.configure(ctx, protocol.SessionConfigureParams{Model: name})
}

// toEffort sets the reasoning effort. The daemon rejects efforts that the model does not have.
func (c *configuration) toEffort(ctx context.Context, effort string) error {
	if effort == modelDefault {
		effort = ""
	}
	return c.configure(ctx, protocol.SessionConfigureParams{Effort: &effort})
}

// toSandbox sets the sandbox mode of the session's commands. Its other approval settings stay.
func (c *configuration) toSandbox(ctx context.Context, mode protocol.SandboxMode) error {
	if mode == "" || !mode.Known() {
		return invalidParams("/value", fmt.Sprintf("unknown sandbox mode %q", mode))
	}
	approval := c.get().Approval
	approval.Sandbox = mode
	return c.configure(ctx, protocol.SessionConfigureParams{Approval: &approval})
}

// configure sends a change to the daemon, then reads the configuration back.
// Prompts that follow use the new settings.
func (c *configuration) configure(ctx context.Context, p protocol.SessionConfigureParams) error {
	p.Mutation, p.SessionID = newMutation(), c.id
	if err := c.daemon.call(ctx, "session/configure", p, nil); err != nil {
		return err
	}
	var is protocol.SessionReadResult
	if err := c.daemon.call(ctx, "session/read", protocol.SessionReadParams{SessionID: c.id, Limit: 1}, &is); err != nil {
		return err
	}
	c.set(is.Session.Config)
	c.overlay.follow(ctx, c.daemon.call, is.Session.Config)
	return nil
}

func (c *configuration) get() protocol.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known
}

func (c *configuration) set(known protocol.Config) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = known
}

// changed sends the editor a new title or new settings of the session, including
// changes that other clients made.
func (s *session) changed(ctx context.Context, ev *protocol.Event) {
	if ev.Title != "" {
		s.send(ctx, &sdk.SessionSessionInfoUpdate{Title: &ev.Title, SessionUpdate: "session_info_update"})
	}
	if ev.Config != nil {
		s.configured(ctx, *ev.Config)
	}
}

// configured stores a new configuration and sends the current mode and all
// options.
func (s *session) configured(ctx context.Context, c protocol.Config) {
	s.config.set(c)
	s.overlay.follow(ctx, s.link.Call, c)
	s.view.window = c.Model.ContextWindow
	s.send(ctx, &sdk.SessionCurrentModeUpdate{CurrentModeId: sdk.SessionModeId(modeOf(c).id), SessionUpdate: "current_mode_update"})
	st, err := settingsOf(ctx, s.link.Call, c)
	if err != nil {
		s.Log.Warn("could not send the settings of a session", "session", s.id, "error", err)
		return
	}
	s.send(ctx, &sdk.SessionConfigOptionUpdate{ConfigOptions: st.options, SessionUpdate: "config_option_update"})
}
