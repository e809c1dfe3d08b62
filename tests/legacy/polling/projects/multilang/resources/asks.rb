# A spout with Storm's own storm.rb that sleeps in each nextTuple.
require "json"
require "./storm"

class Asks < Storm::Spout
  def open(conf, context)
    @secs, @task, @number = conf["test.secs"], context["taskid"], 0
    @sent = File.join(conf["test.folder"], "sent-#{@task}.jsonl")
  end

  def nextTuple
    sleep @secs
    @number += 1
    File.write(@sent, JSON.generate(:number => @number) + "\n", :mode => "a")
    emit([@task, @number, Time.now.to_f], :id => @number)
  end
end

Asks.new.run
