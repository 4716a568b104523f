-- Plays a script with Neovim's vim.lsp.rpc: SCRIPT WORKSPACE LASHD ARGS... are in g:client_args. Prints what it receives to stdout.
local args = vim.g.client_args
local kept, events, at = { ['$cwd'] = args[2] }, {}, 1
local over = false

local function say(line) io.stdout:write(vim.json.encode(line) .. '\n') end

local dispatchers = {
  notification = function(method, params)
    if method == 'session/event' then table.insert(events, params) end
  end,
  on_exit = function() over = true end,
}
local rpc
if vim.fn.has('nvim-0.10') == 1 then
  rpc = vim.lsp.rpc.start(vim.list_slice(args, 3), dispatchers)
else
  rpc = vim.lsp.rpc.start(args[3], vim.list_slice(args, 4), dispatchers)
end

local function untilTrue(what, ok) assert(vim.wait(60000, ok, 2), 'waited in vain: ' .. what) end

-- fill puts what was kept in the place of its names.
local function fill(value)
  if type(value) == 'string' then
    if kept[value] ~= nil then return kept[value] end
  elseif type(value) == 'table' then
    for k, v in pairs(value) do value[k] = fill(v) end
  end
  return value
end

local function keep(step, value)
  for name, path in pairs(step.keep or {}) do
    local v = value
    for _, key in ipairs(path) do v = v[key] end
    kept[name] = v
  end
end

local function call(step)
  local done, err, result
  local params = step.params
  if next(params) == nil then params = {} end -- as people write it in Lua: it is sent as an array
  assert(rpc.request(step.call, params, function(e, r) done, err, result = true, e, r end))
  untilTrue(step.call, function() return done end)
  if err then
    say({ call = step.call, error = { code = err.code, message = err.message, data = err.data } })
  else
    say({ call = step.call, result = result })
    keep(step, result)
  end
end

local function await(step)
  untilTrue(step.await, function()
    while events[at] do
      at = at + 1
      if events[at - 1].type == step.await then return true end
    end
  end)
  keep(step, events[at - 1])
end

local function tell()
  for _, e in ipairs(events) do say({ event = e }) end
  io.stdout:flush()
end

local ok, why = pcall(function()
  for line in io.lines(args[1]) do
    local step = fill(vim.json.decode(line))
    if step.call then call(step)
    elseif step.await then await(step)
    elseif step.notify then rpc.notify(step.notify)
    else
      tell()
      vim.loop.kill(vim.loop.getpid(), 'sigkill')
    end
  end
  untilTrue('exit', function() return over end)
  tell()
end)
if not ok then
  io.stderr:write(tostring(why) .. '\n')
  os.exit(1)
end
os.exit(0)
