#!/usr/bin/env python3
"""An MCP server with one tool, over stdio."""
import json, os, sys

for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    method, result = request["method"], {}
    if method == "initialize":
        result = {"protocolVersion": request["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "clock", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "time", "description": "Tell the time", "inputSchema": {"type": "object", "properties": {}}}]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": "noon in " + os.path.basename(os.getcwd())}]}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
