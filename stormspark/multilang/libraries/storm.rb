# Licensed under the Apache License, Version 2.0, as the rest of stormspark is.
# The library `storm` for children in Ruby that have none of their own: Storm::Bolt, Storm::Spout and Storm::Tuple.

require "json"

module Storm
  module Protocol
    class << self
      attr_accessor :mode, :pending_taskids, :pending_commands
    end
    self.pending_taskids = []
    self.pending_commands = []

    def read_message
      lines = []
      until (line = $stdin.readline.chomp) == "end"
        lines << line
      end
      JSON.parse(lines.join("\n"))
    end

    def read_task_ids
      next_message(Protocol.pending_taskids, Protocol.pending_commands) { |message| message.is_a?(Array) }
    end

    def read_command
      next_message(Protocol.pending_commands, Protocol.pending_taskids) { |message| !message.is_a?(Array) }
    end

    def send_msg_to_parent(message)
      $stdout.write("#{message.to_json}\nend\n")
      $stdout.flush
    end

    def sync
      send_msg_to_parent("command" => "sync")
    end

    def send_pid(folder)
      send_msg_to_parent("pid" => Process.pid)
      File.write(File.join(folder, Process.pid.to_s), "")
    end

    def emit_bolt(tup, args = {})
      anchors = args[:anchors] || args[:anchor] || []
      anchors = [anchors] unless anchors.is_a?(Enumerable)
      send_emit({ "tuple" => tup, "anchors" => anchors.map(&:id) }, args)
    end

    def emit_spout(tup, args = {})
      send_emit(args[:id] ? { "tuple" => tup, "id" => args[:id] } : { "tuple" => tup }, args)
    end

    def emit(*args)
      Protocol.mode == "spout" ? emit_spout(*args) : emit_bolt(*args)
    end

    def ack(tup)
      send_msg_to_parent("command" => "ack", "id" => tup.id)
    end

    def fail(tup)
      send_msg_to_parent("command" => "fail", "id" => tup.id)
    end

    def reportError(msg)
      send_msg_to_parent("command" => "error", "msg" => msg.to_s)
    end

    def log(msg, level = 2)
      send_msg_to_parent("command" => "log", "msg" => msg.to_s, "level" => level)
    end

    %w[Trace Debug Info Warn Error].each_with_index do |name, level|
      define_method("log#{name}") { |msg| log(msg, level) }
    end

    def handshake
      setup = read_message
      send_pid(setup["pidDir"])
      [setup["conf"], setup["context"]]
    end

    private

    def next_message(waiting, others)
      return waiting.shift unless waiting.empty?

      loop do
        message = read_message
        return message if yield(message)

        others.push(message)
      end
    end

    def send_emit(message, args)
      message["command"] = "emit"
      message["stream"] = args[:stream] if args[:stream]
      message["task"] = args[:direct_task] if args[:direct_task]
      send_msg_to_parent(message)
      read_task_ids unless args[:direct_task]
    end

    def until_it_fails
      loop { yield }
    rescue EOFError
      nil # the worker has closed the pipe
    rescue StandardError => e
      reportError("#{e.class}: #{e.message}\n#{e.backtrace.join("\n")}")
    end
  end

  class Tuple
    attr_accessor :id, :component, :stream, :task, :values

    def initialize(id, component, stream, task, values)
      @id = id
      @component = component
      @stream = stream
      @task = task
      @values = values
    end

    def self.from_hash(hash)
      new(*hash.values_at("id", "comp", "stream", "task", "tuple"))
    end

    def is_heartbeat
      task == -1 && stream == "__heartbeat"
    end

    def is_tick
      task == -1 && stream == "__tick"
    end
  end

  class Bolt
    include Storm::Protocol

    def prepare(conf, context); end

    def process(tuple); end

    def run
      Protocol.mode = "bolt"
      prepare(*handshake)
      until_it_fails do
        tuple = Tuple.from_hash(read_command)
        tuple.is_heartbeat ? sync : process(tuple)
      end
    end
  end

  class Spout
    include Storm::Protocol

    def open(conf, context); end

    def nextTuple; end

    def ack(id); end

    def fail(id); end

    def activate; end

    def deactivate; end

    def run
      Protocol.mode = "spout"
      open(*handshake)
      until_it_fails do
        message = read_command
        case message["command"]
        when "next" then nextTuple
        when "ack" then ack(message["id"])
        when "fail" then fail(message["id"])
        when "activate" then activate
        when "deactivate" then deactivate
        end
        sync
      end
    end
  end
end
