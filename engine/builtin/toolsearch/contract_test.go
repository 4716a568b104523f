package toolsearch_test

import (
	"testing"

	"lashd/engine/builtin/toolsearch"
	"lashd/engine/plugin/plugintest"
	"lashd/rpc/protocol"
)

func TestContract(t *testing.T) {
	plugintest.Run(t, toolsearch.Factory{}, plugintest.Config{Options: protocol.PluginOptions{toolsearch.ID: []byte(`{}`)}})
}
