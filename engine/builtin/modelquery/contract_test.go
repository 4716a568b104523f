package modelquery_test

import (
	"testing"

	"lashd/engine/builtin/modelquery"
	"lashd/engine/plugin/plugintest"
	"lashd/rpc/protocol"
)

func TestContract(t *testing.T) {
	plugintest.Run(t, modelquery.Factory{}, plugintest.Config{Options: protocol.PluginOptions{modelquery.ID: []byte(`{"model":"test"}`)}})
}
