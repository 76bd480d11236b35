package com.acme.shop;

/** An order: its lines in an array, its total computed once and kept. */
class Order {
  /** Orders made by all threads together. */
  static int created;

  final int id;
  final Customer customer;
  final OrderLine[] lines;
  long totalCents;
  boolean shipped;

  Order(int id, Customer customer, OrderLine[] lines) {
    this.id = id;
    this.customer = customer;
    this.lines = lines;
    synchronized (Order.class) {
      created++;
    }
  }

  void computeTotal() {
    long sum = 0;
    for (OrderLine line : lines) {
      sum += line.total();
    }
    totalCents = sum - sum * discountPercent() / 100;
  }

  int discountPercent() {
    return customer.discountPercent;
  }
}
