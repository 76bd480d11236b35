package com.acme.shop;

/** A subclass with one field more; pattern com.acme.shop.Order+ takes it in, com.acme.shop.Order does not. */
final class RushOrder extends Order {
  int surchargePercent = 10;

  RushOrder(int id, Customer customer, OrderLine[] lines) {
    super(id, customer, lines);
  }

  @Override
  void computeTotal() {
    super.computeTotal();
    totalCents += totalCents * surchargePercent / 100;
  }
}
