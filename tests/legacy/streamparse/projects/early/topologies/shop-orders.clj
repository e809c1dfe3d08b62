(ns shop-orders
  (:use     [streamparse.specs]
            [backtype.storm clojure config])
  (:require [clojure.string :as string])
  (:gen-class))

;; How many tasks count. The environment may say another number.
(def default-counters 2)

(defn counters
  "The number of tasks that count."
  [options]
  (get options "early.counters" default-counters))

(defn keeper [options id source fields]
  (python-bolt-spec options {source :global} "bolts.keeping.Keeper" []
                    :conf {"keeper.file" (str id ".jsonl")}))

(defn replays [options]
  [{"orders" (python-spout-spec options "spouts.orders.Orders" {"default" ["customer" "amount"] "big" ["amount"]})}
   {"kept" (keeper options "replays" "orders" ["customer"])}])

(defn shop-orders [options]
  (let [customer ["customer"]
        ids (map #(string/join "-" ["kept" %]) ["sums" "batches"])]
    [
     ;; spouts
     {"orders" (python-spout-spec
          options
          "spouts.orders.Orders"
          {"default" ["customer" "amount"]
           "big" ["amount"]}
          :p 1)}

     ;; bolts
     {"sums" (python-bolt-spec
          options
          {"orders" customer}
          "bolts.summing.Sums"
          ["customer" "sum"]
          :p (counters options))
      "batches" (python-bolt-spec
          options
          {["orders" "big"] :shuffle}
          "bolts.summing.Batches"
          ["amounts"])
      (first ids) (keeper options "sums" "sums" customer)
      (second ids) (keeper options "batches" "batches" ["amounts"])}
    ]))
