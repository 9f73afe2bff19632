select p.purchase, p.player, p.amount, d.country, d.level -- as they were when the purchase was made
from purchases p
left join profiles d
  on d.player = p.player and p.at >= d.valid_from and (p.at < d.valid_to or d.valid_to is null)
order by p.purchase
