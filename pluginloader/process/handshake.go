package process

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"lashd/pluginloader/child"
)

// initialize is the first message to a plugin. It repeats the manifest's names, so that the program
// can check them.
type initialize struct {
	ProtocolVersion int             `json:"protocolVersion"`
	PluginID        string          `json:"pluginId"`
	Nonce           string          `json:"nonce"` // random; the answer must repeat it
	Config          json.RawMessage `json:"config,omitempty"`
	DataDir         string          `json:"dataDir,omitempty"` // directory for the plugin's own files
	Contributes     confirmed       `json:"contributes"`
}

// initialized is the answer to initialize. It must agree with the manifest.
type initialized struct {
	ProtocolVersion int       `json:"protocolVersion"`
	PluginID        string    `json:"pluginId"`
	Nonce           string    `json:"nonce"`
	Version         string    `json:"version,omitempty"`
	Contributes     confirmed `json:"contributes"`
}

// handshake checks that the process is the declared plugin: same protocol version, same name, and
// handlers for exactly what the manifest declares. A program that does more than the manifest says
// would bypass what the user approved. It fails after Deadlines.Start.
func (l *life) handshake(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, l.config.Deadlines.Start, child.ErrLate)
	defer cancel()
	c := l.config
	offer := initialize{ProtocolVersion, c.ID, rand.Text(), c.Options, c.DataDir, c.Contributes.names()}
	raw, err := l.call(ctx, "initialize", offer, 0, func() {})
	if err != nil {
		return err
	}
	var said initialized
	if err := strict(raw, &said); err != nil {
		return l.fail(Protocol, fmt.Errorf("initialize: %w", err))
	}
	if err := offer.confirm(&said); err != nil {
		return l.fail(Protocol, fmt.Errorf("initialize: %w", err))
	}
	l.tell("initialized", struct{}{})
	return nil
}

// confirm compares the answer with the manifest. The error lists the differences for the plugin's
// author.
func (o *initialize) confirm(said *initialized) error {
	switch {
	case said.ProtocolVersion != o.ProtocolVersion:
		return fmt.Errorf("it uses version %d of the plugin protocol; lashd uses version %d", said.ProtocolVersion, o.ProtocolVersion)
	case said.PluginID != o.PluginID:
		return fmt.Errorf("it reports the name %.80q, which differs from plugin.json", said.PluginID)
	case said.Nonce != o.Nonce:
		return errors.New("it returned the wrong nonce")
	}
	if wrong := o.Contributes.differs(said.Contributes); len(wrong) > 0 {
		return fmt.Errorf("plugin.json and the program differ: %.400s", strings.Join(wrong, "; "))
	}
	return nil
}
