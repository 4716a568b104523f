package history_test

import (
	"testing"

	"lashd/engine/builtin/history"
	"lashd/engine/plugin/plugintest"
	"lashd/rpc/protocol"
)

func TestContract(t *testing.T) {
	plugintest.Run(t, history.Factory{}, plugintest.Config{Options: protocol.PluginOptions{history.ID: []byte(shorten)}})
}
