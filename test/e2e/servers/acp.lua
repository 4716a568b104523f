-- Is an editor that runs an agent from Neovim: nvim --headless -u NONE -l is not in old versions, so: nvim --headless -u NONE -S acp.lua
-- with the variables SETTINGS (a file of Lua) and WORKSPACE. Stand-ins for the plugins keep the command. Prints what the agent says.
local command
package.preload["codecompanion.adapters"] = function() return { extend = function(_, changes) return changes end } end
package.preload["codecompanion"] = function()
  return { setup = function(config) command = config.adapters.acp.lashd().commands.default end }
end
package.preload["avante"] = function()
  return { setup = function(config)
    local agent = config.acp_providers[config.provider]
    command = vim.list_extend({ agent.command }, agent.args)
  end }
end
dofile(vim.env.SETTINGS)

local answers, said, rest = {}, "", ""
local function receive(line)
  local message = vim.json.decode(line)
  local update = message.params and message.params.update
  if message.id and not message.method then answers[message.id] = message end
  if update and update.sessionUpdate == "agent_message_chunk" then said = said .. update.content.text end
end
local agent = vim.fn.jobstart(command, { on_stdout = function(_, parts)
  parts[1] = rest .. parts[1]
  rest = table.remove(parts)
  for _, line in ipairs(parts) do receive(line) end
end })
local function request(id, method, params)
  vim.fn.chansend(agent, vim.json.encode({ jsonrpc = "2.0", id = id, method = method, params = params }) .. "\n")
  vim.wait(120000, function() return answers[id] ~= nil end, 10)
  return answers[id].result
end
request(1, "initialize", { protocolVersion = 1, clientCapabilities = vim.empty_dict() })
local session = request(2, "session/new", { cwd = vim.env.WORKSPACE, mcpServers = {} }).sessionId
local stop = request(3, "session/prompt", { sessionId = session, prompt = { { type = "text", text = "hello" } } }).stopReason
io.stdout:write(said .. " " .. stop .. "\n")
vim.fn.chanclose(agent, "stdin")
vim.fn.jobwait({ agent }, 60000)
vim.cmd("qall!")
